package lua

import (
	"math"
	"strconv"
	"strings"
)

// FormatNumber writes n as "%.14g" of C does, which is how Lua 5.1 writes numbers.
func FormatNumber(n float64) string {
	if i := int64(n); float64(i) == n && i > -1e14 && i < 1e14 && (i != 0 || !math.Signbit(n)) {
		if i >= 0 && i < int64(len(smallNumbers)) {
			return smallNumbers[i]
		}
		return strconv.FormatInt(i, 10)
	}
	return string(appendGeneral(nil, n, 14, false))
}

// smallNumbers saves the allocation of the numbers that scripts write most.
var smallNumbers = func() (texts [256]string) {
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	return texts
}()

// appendGeneral appends n as %.<precision>g of C; alternate keeps trailing zeros, as its flag # does.
func appendGeneral(dst []byte, n float64, precision int, alternate bool) []byte {
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return appendNotFinite(dst, n)
	}
	precision = max(precision, 1)
	var buf [400]byte
	digits := strconv.AppendFloat(buf[:0], n, 'e', precision-1, 64)
	mark := strings.LastIndexByte(bytesAsString(digits), 'e')
	exponent, _ := strconv.Atoi(string(digits[mark+1:]))
	if exponent < -4 || exponent >= precision {
		mantissa := digits[:mark]
		if !alternate {
			mantissa = trimZeros(mantissa)
		} else if precision == 1 {
			mantissa = append(mantissa[:mark:mark], '.')
		}
		dst = append(dst, mantissa...)
		return append(dst, digits[mark:]...)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, n, 'f', precision-1-exponent, 64)
	if !alternate {
		return dst[:from+len(trimZeros(dst[from:]))]
	}
	if precision-1-exponent == 0 {
		dst = append(dst, '.')
	}
	return dst
}

// trimZeros cuts the zeros behind a decimal point, and the point if nothing is left behind it.
func trimZeros(text []byte) []byte {
	for i := range text {
		if text[i] != '.' {
			continue
		}
		end := len(text)
		for text[end-1] == '0' {
			end--
		}
		if text[end-1] == '.' {
			end--
		}
		return text[:end]
	}
	return text
}

func appendNotFinite(dst []byte, n float64) []byte {
	if math.Signbit(n) {
		dst = append(dst, '-')
	}
	if math.IsNaN(n) {
		return append(dst, "nan"...)
	}
	return append(dst, "inf"...)
}

// ParseNumber is the number that text denotes, as Lua 5.1 converts strings on glibc: what strtod takes,
// decimal, hexadecimal, "inf" and "nan" included, with spaces around it.
func ParseNumber(text string) (float64, bool) {
	text = strings.TrimLeft(text, spaces)
	if n, ok := parseDigits(text); ok {
		return n, true
	}
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end] // as for C, for which a string ends at its first zero byte
	}
	n, rest := strtod(text)
	if len(rest) == len(text) || strings.Trim(rest, spaces) != "" {
		return 0, false
	}
	return n, true
}

const spaces = " \t\n\v\f\r"

// parseDigits is the fast path: up to 15 decimal digits and nothing else.
func parseDigits(text string) (float64, bool) {
	if len(text) == 0 || len(text) > 15 {
		return 0, false
	}
	n := int64(0)
	for i := range len(text) {
		d := text[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return float64(n), true
}

// strtod converts the longest beginning of text that is a number, and returns what follows it. Where
// none is, it returns text whole.
func strtod(text string) (n float64, rest string) {
	body, sign := text, 1.0
	if body != "" && (body[0] == '-' || body[0] == '+') {
		if body[0] == '-' {
			sign = -1
		}
		body = body[1:]
	}
	switch {
	case hasPrefixFold(body, "infinity"):
		return math.Inf(int(sign)), body[8:]
	case hasPrefixFold(body, "inf"):
		return math.Inf(int(sign)), body[3:]
	case hasPrefixFold(body, "nan"):
		return math.Copysign(math.NaN(), sign), skipNaN(body[3:])
	case hasPrefixFold(body, "0x"):
		if end := numeralEnd(body[2:], isHexDigit, 'p'); end > 0 {
			n = parseHex(body[2 : 2+end])
			return sign * n, body[2+end:]
		}
		return sign * 0, body[1:]
	}
	end := numeralEnd(body, isDigit, 'e')
	if end == 0 {
		return 0, text
	}
	n, _ = strconv.ParseFloat(body[:end], 64) // out of range: the infinity that strtod returns too
	return sign * n, body[end:]
}

// skipNaN skips the "(letters)" that may follow nan.
func skipNaN(text string) string {
	if text == "" || text[0] != '(' {
		return text
	}
	for i := 1; i < len(text); i++ {
		if text[i] == ')' {
			return text[i+1:]
		}
		if !isAlnum(text[i]) && text[i] != '_' {
			break
		}
	}
	return text
}

// numeralEnd is the length of the numeral that text begins with: digits with at most one point, at
// least one digit, and an exponent if digits follow its mark.
func numeralEnd(text string, digit func(byte) bool, mark byte) int {
	end, digits, point := 0, 0, false
	for ; end < len(text); end++ {
		if digit(text[end]) {
			digits++
		} else if text[end] == '.' && !point {
			point = true
		} else {
			break
		}
	}
	if digits == 0 {
		return 0
	}
	if end < len(text) && text[end]|0x20 == mark {
		at := end + 1
		if at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		if at < len(text) && isDigit(text[at]) {
			for at < len(text) && isDigit(text[at]) {
				at++
			}
			return at
		}
	}
	return end
}

// parseHex converts hexadecimal digits with an optional point and binary exponent.
func parseHex(digits string) float64 {
	text := "0x" + digits
	if !strings.ContainsAny(digits, "pP") {
		text += "p0"
	}
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func isDigit(c byte) bool    { return c-'0' < 10 }
func isHexDigit(c byte) bool { return isDigit(c) || c|0x20-'a' < 6 }
func isAlpha(c byte) bool    { return c|0x20-'a' < 26 }
func isAlnum(c byte) bool    { return isAlpha(c) || isDigit(c) }
func isSpace(c byte) bool    { return c == ' ' || c-'\t' < 5 }
func isControl(c byte) bool  { return c < ' ' || c == 127 }
func isPunct(c byte) bool    { return c > ' ' && c < 127 && !isAlnum(c) }
func isUpper(c byte) bool    { return c-'A' < 26 }
func isLower(c byte) bool    { return c-'a' < 26 }
