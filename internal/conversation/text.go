package conversation

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Text shows a reply as redis-cli does, "(closed)" for nil:
//
//	OK    (error) ERR syntax error    (integer) 5    "text"    (nil)    (empty array)
//
//	1) "first"
//	2) 1) "nested"
func Text(reply []byte) string {
	if reply == nil {
		return "(closed)"
	}
	shown, _ := format(reply, "")
	return shown
}

// format shows the first reply of b, nested ones indented, and returns the rest.
func format(b []byte, indent string) (shown string, rest []byte) {
	head, rest, _ := bytes.Cut(b, []byte("\r\n"))
	line := string(head[1:])
	n, _ := strconv.Atoi(line) // where it is a length
	switch kind := head[0]; kind {
	case '+':
		return line, rest
	case '-':
		return "(error) " + line, rest
	case ':':
		return "(integer) " + line, rest
	case ',':
		return "(double) " + line, rest
	case '(':
		return "(big number) " + line, rest
	case '#':
		return map[string]string{"t": "(true)", "f": "(false)"}[line], rest
	case '_':
		return "(nil)", rest
	case '$', '=':
		if n < 0 {
			return "(nil)", rest
		}
		return Quote(rest[:n]), rest[n+2:]
	case '*', '~', '%', '>':
		return formatItems(kind, n, rest, indent)
	}
	panic(fmt.Sprintf("BUG: reply of an unknown type: %q", b))
}

func formatItems(kind byte, n int, rest []byte, indent string) (string, []byte) {
	if n < 0 {
		return "(nil)", rest
	}
	if n == 0 {
		return "(empty " + map[byte]string{'*': "array", '~': "set", '%': "map", '>': "push"}[kind] + ")", rest
	}
	if kind == '%' {
		n *= 2
	}
	deeper := indent + strings.Repeat(" ", len(strconv.Itoa(n))+2)
	lines := make([]string, n)
	for i := range lines {
		lines[i], rest = format(rest, deeper)
		lines[i] = fmt.Sprintf("%d) %s", i+1, lines[i])
	}
	return strings.Join(lines, "\n"+indent), rest
}

// Quote shows a bulk; bytes that do not print are hexadecimal.
func Quote(b []byte) string {
	out := []byte{'"'}
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ' && c < 0x7F:
			out = append(out, c)
		default:
			out = fmt.Appendf(out, `\x%02x`, c)
		}
	}
	return string(append(out, '"'))
}
