package lua

import (
	"math"
	"strconv"
	"strings"
)

// A directive is one % of a format, as printf of C has them.
type directive struct {
	minus, plus, space, sharp, zero bool
	width                           int
	precision                       int // -1: none
	verb                            byte
}

// stringFormat is string.format: each directive as printf of C writes it.
func stringFormat(c *Call) {
	format := c.CheckString(1)
	out := growing{call: c}
	for arg := 1; ; {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			out.add(format)
			break
		}
		out.add(format[:i])
		format = format[i+1:]
		if strings.HasPrefix(format, "%") {
			out.add("%")
			format = format[1:]
			continue
		}
		var d directive
		arg++
		if arg > c.args {
			c.ArgError(arg, "no value")
		}
		format = c.parseDirective(&d, format)
		c.Spend(16)
		c.formatOne(&out, &d, arg)
	}
	c.PushString(bytesAsString(out.text))
}

// parseDirective parses what follows a % and returns the rest of the format.
func (c *Call) parseDirective(d *directive, format string) string {
	at := 0
	for ; at < len(format) && strings.IndexByte("-+ #0", format[at]) >= 0; at++ {
		switch format[at] {
		case '-':
			d.minus = true
		case '+':
			d.plus = true
		case ' ':
			d.space = true
		case '#':
			d.sharp = true
		case '0':
			d.zero = true
		}
	}
	if at > 5 {
		c.Errorf("invalid format (repeated flags)")
	}
	format = format[at:]
	d.width, format = twoDigits(format)
	d.precision = -1
	if strings.HasPrefix(format, ".") {
		d.precision, format = twoDigits(format[1:])
	}
	if format != "" && isDigit(format[0]) {
		c.Errorf("invalid format (width or precision too long)")
	}
	if format == "" {
		return ""
	}
	d.verb = format[0]
	return format[1:]
}

func twoDigits(format string) (n int, rest string) {
	for i := 0; i < 2 && format != "" && isDigit(format[0]); i++ {
		n = n*10 + int(format[0]-'0')
		format = format[1:]
	}
	return n, format
}

// stepsOfFloat is what it costs to write a number with up to 400 digits.
const stepsOfFloat = 400

func (c *Call) formatOne(out *growing, d *directive, arg int) {
	var buf [512]byte
	switch d.verb {
	case 'c':
		text := d.pad(buf[:0], []byte{byte(c.CheckInt(arg))})
		out.add(string(cutBytesAtZero(text))) // as C, which measures it as a string
	case 'd', 'i':
		n := c.CheckInt(arg)
		out.add(string(d.integer(buf[:0], uint64(max(n, -n)), d.sign(n < 0), 10)))
	case 'u':
		out.add(string(d.integer(buf[:0], toUnsigned(c.CheckNumber(arg)), "", 10)))
	case 'o':
		out.add(string(d.integer(buf[:0], toUnsigned(c.CheckNumber(arg)), "", 8)))
	case 'x', 'X':
		text := d.integer(buf[:0], toUnsigned(c.CheckNumber(arg)), "", 16)
		if d.verb == 'X' {
			text = []byte(strings.ToUpper(string(text)))
		}
		out.add(string(text))
	case 'e', 'E', 'f', 'g', 'G':
		c.Spend(stepsOfFloat)
		out.add(string(d.float(buf[:0], c.CheckNumber(arg))))
	case 'q':
		quoted(out, c.CheckString(arg))
	case 's':
		text := c.CheckString(arg)
		if d.precision < 0 && len(text) >= 100 {
			out.add(text)
			return
		}
		text = cutAtZero(text)
		if d.precision >= 0 {
			text = text[:min(d.precision, len(text))]
		}
		d.zero = false
		out.add(string(d.pad(buf[:0], []byte(text))))
	default:
		verb := ""
		if d.verb != 0 {
			verb = string([]byte{d.verb})
		}
		c.Errorf("invalid option '%%%s' to 'format'", verb)
	}
}

// toUnsigned is the conversion from double to unsigned long of C on amd64.
func toUnsigned(n float64) uint64 {
	if n >= 1<<63 {
		if n >= 1<<64 {
			return 0
		}
		return uint64(int64(n-1<<63)) ^ 1<<63
	}
	return uint64(truncate(n))
}

func (d *directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.plus:
		return "+"
	case d.space:
		return " "
	}
	return ""
}

// pad appends text, filled with spaces to the width.
func (d *directive) pad(dst, text []byte) []byte {
	fill := max(d.width-len(text), 0)
	if d.minus {
		dst = append(dst, text...)
		return appendRepeated(dst, ' ', fill)
	}
	dst = appendRepeated(dst, ' ', fill)
	return append(dst, text...)
}

func appendRepeated(dst []byte, c byte, n int) []byte {
	for range n {
		dst = append(dst, c)
	}
	return dst
}

// integer appends an integer with its sign or prefix.
func (d *directive) integer(dst []byte, n uint64, prefix string, base int) []byte {
	digits := strconv.FormatUint(n, base)
	if d.precision == 0 && n == 0 {
		digits = ""
	}
	if d.sharp && base == 16 && n != 0 {
		prefix = "0x"
	}
	zeros := max(d.precision-len(digits), 0)
	if d.sharp && base == 8 && zeros == 0 && !strings.HasPrefix(digits, "0") {
		zeros = 1
	}
	if d.zero && !d.minus && d.precision < 0 {
		zeros = max(zeros, d.width-len(prefix)-len(digits))
	}
	text := append([]byte(prefix), appendRepeated(nil, '0', zeros)...)
	return d.pad(dst, append(text, digits...))
}

// float appends a number in one of the forms e, f and g.
func (d *directive) float(dst []byte, n float64) []byte {
	sign := d.sign(math.Signbit(n))
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	var digits []byte
	finite := !math.IsInf(n, 0) && !math.IsNaN(n)
	switch {
	case !finite:
		digits = appendNotFinite(nil, math.Copysign(n, 1))
	case d.verb|0x20 == 'g':
		digits = appendGeneral(nil, math.Abs(n), precision, d.sharp)
	default:
		digits = strconv.AppendFloat(nil, math.Abs(n), d.verb|0x20, precision, 64)
		if d.sharp && precision == 0 {
			digits = insertPoint(digits)
		}
	}
	if isUpper(d.verb) {
		digits = []byte(strings.ToUpper(string(digits)))
	}
	text := []byte(sign)
	if d.zero && !d.minus && finite {
		text = appendRepeated(text, '0', d.width-len(sign)-len(digits))
	}
	return d.pad(dst, append(text, digits...))
}

// insertPoint puts a point behind the digits, before the exponent.
func insertPoint(digits []byte) []byte {
	for i, c := range digits {
		if c == 'e' {
			return append(append(append([]byte(nil), digits[:i]...), '.'), digits[i:]...)
		}
	}
	return append(digits, '.')
}
