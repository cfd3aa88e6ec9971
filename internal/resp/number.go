package resp

import (
	"encoding/binary"
	"math"
)

// maxShortDigits bounds the numbers that shortLength reads, far below overflow.
// No length or count that a limit allows by default is longer.
const maxShortDigits = 10

// shortLength reads "<digits>\r\n" at the start of b: a number without sign or leading zero. size
// is the number of bytes including CR LF. It is 0 if b begins with anything else, whether
// incomplete, malformed or only long: the caller finds out which on a slower path.
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

// crlf is CR LF as a little-endian word.
const crlf = uint16('\r') | uint16('\n')<<8

// lengthAt reads the number behind the type byte buf[at], as shortLength does. next is
// the first byte behind the header, or 0 if it is not there or not plain. One load of
// eight bytes instead of a loop halves the time for numbers of one and two digits,
// which are those of commands, keys and small values.
func lengthAt(buf []byte, at int) (n, next int) {
	if at+8 <= len(buf) {
		word := binary.LittleEndian.Uint64(buf[at:])
		first, second := int(word>>8&0xff)-'0', int(word>>16&0xff)-'0'
		if uint16(word>>16) == crlf && uint(first) <= 9 {
			return first, at + 4
		}
		if uint16(word>>24) == crlf && uint(first-1) <= 8 && uint(second) <= 9 {
			return first*10 + second, at + 5
		}
	}
	n, size := shortLength(buf[at+1:])
	if size == 0 {
		return 0, 0
	}
	return n, at + 1 + size
}

// endsLine reports whether buf[at:] begins with CR LF. It loads both bytes at once.
func endsLine(buf []byte, at int) bool {
	return binary.LittleEndian.Uint16(buf[at:]) == crlf
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
		}
		n = n*10 + uint64(c)
	}
	if negative {
		return -int64(n), n <= -math.MinInt64
	}
	return int64(n), n <= math.MaxInt64
}
