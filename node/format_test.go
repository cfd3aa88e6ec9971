package node

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// format renders a reply as redis-cli does, and returns what follows it:
//
//	OK    (error) ERR syntax error    (integer) 5    "text"    (nil)    (empty array)
//
//	1) "first"
//	2) 1) "nested"
func format(reply []byte, indent string) (text string, rest []byte) {
	end := bytes.Index(reply, []byte("\r\n"))
	line, rest := string(reply[1:end]), reply[end+2:]
	switch reply[0] {
	case '+':
		return line, rest
	case '-':
		return "(error) " + line, rest
	case ':':
		return "(integer) " + line, rest
	case '_':
		return "(nil)", rest
	case '#':
		return map[string]string{"t": "(true)", "f": "(false)"}[line], rest
	case ',':
		return "(double) " + line, rest
	case '$', '=':
		n, _ := strconv.Atoi(line)
		if n < 0 {
			return "(nil)", rest
		}
		return quote(rest[:n]), rest[n+2:]
	case '*', '~', '>', '%':
		return formatAggregate(reply[0], line, rest, indent)
	}
	panic(fmt.Sprintf("BUG: reply of an unknown type: %q", reply))
}

func formatAggregate(kind byte, line string, rest []byte, indent string) (string, []byte) {
	n, _ := strconv.Atoi(line)
	name := map[byte]string{'*': "array", '~': "set", '>': "push", '%': "map"}[kind]
	if n < 0 {
		return "(nil)", rest
	}
	if n == 0 {
		return "(empty " + name + ")", rest
	}
	if kind == '%' {
		n *= 2
	}
	width := len(strconv.Itoa(n)) + 2
	var lines []string
	for i := 1; i <= n; i++ {
		var item string
		item, rest = format(rest, indent+strings.Repeat(" ", width))
		lines = append(lines, fmt.Sprintf("%d) %s", i, item))
	}
	return strings.Join(lines, "\n"+indent), rest
}

// quote shows a bulk: the bytes that print as they are.
func quote(b []byte) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c >= ' ' && c < 0x7F:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, `\x%02x`, c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
