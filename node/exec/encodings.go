package exec

// Encodings are the limits up to which Redis keeps a value in its small form, by the parameters of CONFIG.
// Only OBJECT ENCODING looks at them: values have the same forms here whatever they are.
type Encodings struct {
	HashEntries, HashValue int // hash-max-listpack-entries and -value
	SetInts                int // set-max-intset-entries
	SetEntries, SetValue   int // set-max-listpack-entries and -value
	ZSetEntries, ZSetValue int // zset-max-listpack-entries and -value
	ListSize               int // list-max-listpack-size: elements, within 8 KiB, or -1 to -5 for 4 to 64 KiB
}

// EncodingLook is about how many elements of a value OBJECT ENCODING looks at, under the shard's lock. It takes
// the others for no longer than these.
const EncodingLook = 4096

// ListFits reports whether Redis keeps a list of so many elements, which take so many bytes, in one listpack.
func (e Encodings) ListFits(elements, bytes int) bool {
	const smallest, counted, largest = 4 << 10, 8 << 10, 64 << 10
	if e.ListSize >= 0 {
		return elements <= max(1, e.ListSize) && bytes <= counted
	}
	return bytes <= min(largest, smallest<<(-max(e.ListSize, -5)-1))
}
