package status

import (
	"fmt"
	"strconv"
	"strings"
)

// BytesText formats a number of bytes for people: at most one decimal, in units of 1024.
func BytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + units[u]
}

// MemoryText formats the memory of a pinned database for people: "?" while it has keys that the node has not measured.
func (p *Pinned) MemoryText() string {
	if p.Keys > 0 && p.Bytes == 0 {
		return "?"
	}
	return BytesText(p.Bytes)
}

// CountText formats a number for people: 1,234,567.
func CountText(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// ShareText formats a part of 1 for people.
func ShareText(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + " %" }

// RatioText formats the hit ratio, or returns none if nothing was looked up.
func RatioText(hits, misses uint64, none string) string {
	if hits+misses == 0 {
		return none
	}
	return fmt.Sprintf("%.1f %%", 100*float64(hits)/float64(hits+misses))
}
