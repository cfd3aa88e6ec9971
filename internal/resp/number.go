package resp

import "math"

// maxShortDigits bounds the numbers that shortLength reads, far below overflow.
// No length or count that a limit allows by default is longer.
const maxShortDigits = 10

// shortLength reads "<digits>\r\n" at the start of b: a number without sign or
// leading zero. size counts its bytes with CR LF, and is 0 if b begins with
// anything else, be it incomplete, malformed or merely long: the caller finds
// out which on a slower path.
func shortLength(b []byte) (n, size int) {
	i := 0
	for i < len(b) && i <= maxShortDigits && b[i]-'0' <= 9 {
		n = n*10 + int(b[i]-'0')
		i++
	}
	if i == 0 || i > maxShortDigits || (b[0] == '0' && i > 1) {
		return 0, 0
	}
	if i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
		return 0, 0
	}
	return n, i + 2
}

// ParseInt reads a decimal integer exactly as Redis does: an optional minus,
// no plus, no spaces, no leading zeros, no "-0", no overflow. b is only read.
func ParseInt(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	if digits[0] == '0' {
		return 0, len(b) == 1
	}
	// 19 digits stay below 10^19, which 64 unsigned bits hold.
	var n uint64
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		} else {
			n = n*10 + uint64(c)
		}
	}
	if negative {
		return -int64(n), n <= -math.MinInt64
	}
	return int64(n), n <= math.MaxInt64
}
