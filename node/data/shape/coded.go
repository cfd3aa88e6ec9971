package shape

// A coded string is an item behind its code, as a value of another form than a block may store it. The
// codes from FreeCodes on are not used here.
const (
	MaxCoded  = maxInline // bytes of the longest string that has a code
	FreeCodes = codeNone + 1
)

// AppendCoded appends a string of at most MaxCoded bytes.
func AppendCoded(dst, s []byte) []byte {
	p := probeOf(s)
	n := len(dst) + 1
	dst = append(dst, p.code)
	if p.code < codePadded {
		return append(dst, s...)
	}
	for range p.size() {
		dst = append(dst, 0)
	}
	p.put(dst[n:])
	return dst
}

// Coded returns the string that b begins with, as a view, and how many bytes it takes. ok is false if b
// begins with none: b may be of any content.
func Coded(b []byte) (i Item, n int, ok bool) {
	if len(b) == 0 || b[0] >= codeAway {
		return i, 0, false
	}
	code := b[0]
	n = 1 + int(stored[code])
	if n > len(b) {
		return i, 0, false
	}
	i = Item{code, b[1:n:n]}
	if code >= codePadded && code < codeInt {
		if pad := int(b[n-1]); pad == 0 || pad > padStep {
			return i, 0, false
		}
	}
	return i, n, true
}

// ViewItem is a string that is stored as it is.
func ViewItem(s []byte) Item { return Item{codeAway, s} }
