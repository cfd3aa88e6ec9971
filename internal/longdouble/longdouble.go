package longdouble

import (
	"bytes"
	"math"
	"math/big"
	"strings"
)

// Redis computes INCRBYFLOAT in C's long double. On x86 that has a mantissa of 64 bits, so that 0.1
// + 0.2 is 0.3 and not 0.30000000000000004. A big.Float of that precision rounds alike. Its
// exponent has no practical limit, so two things are done by hand: overflow, and refusing texts
// like 1e999999999 before they are computed.
const (
	MantissaBits = 64
	maxExponent  = 16384      // of 2: larger ones are infinite in a long double
	minExponent  = -16445     // of 2: smaller ones are zero
	MaxText      = 5*1024 - 1 // characters that Redis reads
)

// Parse reads a number as C's strtold does, without white space: decimal, or hexadecimal
// behind 0x. infinite is set for "inf", which Redis accepts as an operand and refuses as a result.
// text is only read.
func Parse(text []byte) (f *big.Float, infinite, ok bool) {
	if len(text) == 0 || len(text) > MaxText {
		return nil, false, false
	}
	unsigned := text
	if text[0] == '+' || text[0] == '-' {
		unsigned = text[1:]
	}
	if bytes.EqualFold(unsigned, []byte("inf")) || bytes.EqualFold(unsigned, []byte("infinity")) {
		return nil, true, true
	}
	base := 10
	if len(unsigned) > 1 && unsigned[0] == '0' && unsigned[1]|0x20 == 'x' {
		unsigned, base = unsigned[2:], 16
	}
	if !isNumber(unsigned, base) {
		return nil, false, false
	}
	if base == 16 {
		base = 0 // big's name for: as the prefix says
	}
	f, _, err := big.ParseFloat(string(text), base, MantissaBits, big.ToNearestEven)
	if err != nil || Overflows(f) {
		return nil, false, false
	}
	if f.Sign() != 0 && f.MantExp(nil) < minExponent {
		return nil, false, false // strtold reports a range error for what rounds to zero
	}
	return f, false, true
}

// Max returns the largest number that a long double can be.
func Max() *big.Float {
	f := new(big.Float).SetPrec(MantissaBits).SetUint64(math.MaxUint64)
	return f.SetMantExp(f, maxExponent-MantissaBits)
}

// Overflows reports whether f is infinite as a long double.
func Overflows(f *big.Float) bool {
	return f.IsInf() || f.MantExp(nil) > maxExponent
}

// isNumber reports whether text is digits, with at most one point among them, and an exponent of at
// most five digits. A longer exponent is out of range whatever the digits, because text has at most
// MaxText.
func isNumber(text []byte, base int) bool {
	exponentMark := byte('e')
	if base == 16 {
		exponentMark = 'p'
	}
	digits, points, i := 0, 0, 0
	for ; i < len(text) && (text[i] == '.' || isDigit(text[i], base)); i++ {
		if text[i] == '.' {
			points++
		} else {
			digits++
		}
	}
	if digits == 0 || points > 1 {
		return false
	}
	return i == len(text) || (text[i]|0x20 == exponentMark && isExponent(text[i+1:]))
}

// isExponent reports whether text is one to five digits, with or without a sign.
func isExponent(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	for _, c := range text {
		if !isDigit(c, 10) {
			return false
		}
	}
	return 0 < len(text) && len(text) <= 5
}

func isDigit(c byte, base int) bool {
	return '0' <= c && c <= '9' || base == 16 && 'a' <= c|0x20 && c|0x20 <= 'f'
}

// Append appends f in Redis's "human friendly" form: %.17Lf of printf without trailing zeros,
// never "-0".
func Append(dst []byte, f *big.Float) []byte {
	text := f.Text('f', 17)
	text = strings.TrimRight(text, "0")
	text = strings.TrimSuffix(text, ".")
	if text == "-0" {
		text = "0"
	}
	return append(dst, text...)
}
