package figures

import (
	"fmt"
	"strconv"
)

// text is an INFO text under construction: headings and "name:value" lines.
type text []byte

// heading begins a section; sections are separated by an empty line.
func (t *text) heading(name string) {
	if len(*t) > 0 {
		*t = append(*t, "\r\n"...)
	}
	*t = append(*t, "# "...)
	*t = append(*t, name...)
	*t = append(*t, "\r\n"...)
}

func (t *text) line(name, value string) {
	*t = append(*t, name...)
	*t = append(*t, ':')
	*t = append(*t, value...)
	*t = append(*t, "\r\n"...)
}

func (t *text) number(name string, n int64) {
	*t = append(*t, name...)
	*t = append(*t, ':')
	*t = strconv.AppendInt(*t, n, 10)
	*t = append(*t, "\r\n"...)
}

// zeros appends fields about things that Dunlin does not have, because dashboards read them.
func (t *text) zeros(names ...string) {
	for _, name := range names {
		t.number(name, 0)
	}
}

// bytes appends a size as a number and again, as "_human", for people.
func (t *text) bytes(name string, n int64) {
	t.number(name, n)
	t.line(name+"_human", humanBytes(n))
}

func (t *text) ratio(name string, part, whole int64, percent bool) {
	r := 0.0
	if whole > 0 {
		r = float64(part) / float64(whole)
	}
	if percent {
		t.line(name, fmt.Sprintf("%.2f%%", r*100))
		return
	}
	t.line(name, fmt.Sprintf("%.2f", r))
}

func (t *text) micros(name string, n int64) {
	t.line(name, fmt.Sprintf("%d.%06d", n/1e6, n%1e6))
}

// humanBytes writes a size as Redis does: binary units with one letter.
func humanBytes(n int64) string {
	const units = "KMGTP"
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + "B"
	}
	f := float64(n) / (1 << 10)
	for i := range len(units) - 1 {
		if f < 1<<10 {
			return fmt.Sprintf("%.2f%c", f, units[i])
		}
		f /= 1 << 10
	}
	return fmt.Sprintf("%.2f%c", f, units[len(units)-1])
}
