package sortedsets

import (
	"bytes"
	"math"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/longdouble"
)

// rankOf turns a score into a rank: 8 bytes that are in the order of the scores. The two zeros have
// one rank, since they are equal, and that of 0 is read. No score is NaN.
func rankOf(score float64) uint64 {
	if score == 0 {
		score = 0 // not -0
	}
	bits := math.Float64bits(score)
	if bits>>63 != 0 {
		return ^bits
	}
	return bits | 1<<63
}

// scoreOf is the score that has a rank.
func scoreOf(rank uint64) float64 {
	if rank>>63 != 0 {
		return math.Float64frombits(rank &^ (1 << 63))
	}
	return math.Float64frombits(^rank)
}

// ParseScore reads a score as C's strtod does, and refuses what is no number, not a number, or out
// of the range of a float64. It allocates nothing for texts of up to 32 bytes.
func ParseScore(text []byte) (score float64, ok bool) {
	score, exact := parseFloat(text)
	return score, exact && !math.IsNaN(score)
}

// parseFloat reads all of a text as strtod does, without spaces. exact is false if it is no number.
// What is too large becomes infinite, what is too small 0, and both are not exact. A text of more than
// longdouble.MaxText bytes is no number: to read hundreds of megabytes of digits takes seconds.
func parseFloat(text []byte) (f float64, exact bool) {
	if len(text) > longdouble.MaxText {
		return math.NaN(), false
	}
	if n, ok := smallInt(withoutZeros(text)); ok {
		return float64(n), true
	}
	if !plausible(text) {
		return math.NaN(), false
	}
	number := string(text)
	if isHex(text) && bytes.IndexByte(text, 'p') < 0 && bytes.IndexByte(text, 'P') < 0 {
		number += "p0" // C needs no exponent
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN(), false
	}
	if f == 0 && hasDigit(text) {
		return f, false
	}
	return f, err == nil
}

// withoutZeros cuts zeros in front of other digits.
func withoutZeros(text []byte) []byte {
	for len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
		text = text[1:]
	}
	return text
}

// smallInt reads a decimal integer of at most 15 digits.
func smallInt(text []byte) (n int64, ok bool) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 15 || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// plausible refuses what strconv reads beyond C's numbers, and not-a-number.
func plausible(text []byte) bool {
	unsigned := bytes.TrimLeft(text, "+-")
	return len(unsigned) > 0 && len(text)-len(unsigned) <= 1 && unsigned[0]|0x20 != 'n' && bytes.IndexByte(text, '_') < 0
}

func isHex(text []byte) bool {
	unsigned := bytes.TrimLeft(text, "+-")
	return len(unsigned) > 1 && unsigned[0] == '0' && unsigned[1]|0x20 == 'x'
}

// hasDigit reports whether the mantissa of a number has a digit that is not 0.
func hasDigit(text []byte) bool {
	exponent := byte('e')
	if isHex(text) {
		exponent = 'p'
	}
	for _, c := range text {
		if c|0x20 == exponent {
			break
		}
		if c >= '1' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' {
			return true
		}
	}
	return false
}

// appendLong appends a score as Redis's ZSCAN of a big sorted set does: %.17Lg of printf.
func appendLong(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	}
	begin := len(dst)
	dst = strconv.AppendFloat(dst, score, 'e', 16, 64)
	e := bytes.LastIndexByte(dst[begin:], 'e')
	exponent, _ := strconv.Atoi(string(dst[begin+e+1:]))
	if exponent < -4 || exponent >= 17 {
		mantissa := trimZeros(dst[begin : begin+e])
		tail := [8]byte{}
		n := copy(tail[:], dst[begin+e:])
		return append(dst[:begin+len(mantissa)], tail[:n]...)
	}
	dst = strconv.AppendFloat(dst[:begin], score, 'f', 16-exponent, 64)
	return dst[:begin+len(trimZeros(dst[begin:]))]
}

// trimZeros cuts the zeros at the end of a fraction.
func trimZeros(text []byte) []byte {
	if bytes.IndexByte(text, '.') < 0 {
		return text
	}
	return bytes.TrimRight(bytes.TrimRight(text, "0"), ".")
}
