package glob

// shortRun is up to how many bytes of a pattern are compared one by one at each place of a key.
const shortRun = 4

// words has a bit for each character of a segment.
type words [maxRun / 64]uint64

// table finds a segment with wildcards in time that depends only on the length of the key: it
// follows all places where the segment may have begun at once (the algorithm Shift-And of Baeza-Yates
// and Gonnet, 1992).
type table struct {
	takes [256]words // takes[c] has the characters that a byte c matches
	size  int
}

func newTable(s *segment) *table {
	t := &table{size: s.size}
	text := s.text
	for i := range s.size {
		var set [256]bool
		n, negated := 1, false
		switch text[0] {
		case '?':
			negated = true
		case '[':
			n, negated = scanClass(text, func(low, high byte) {
				for c := int(low); c <= int(high); c++ {
					set[c] = true
				}
			})
		case '\\':
			if len(text) >= 2 {
				n = 2
			}
			set[text[n-1]] = true
		default:
			set[text[0]] = true
		}
		for c := range set {
			if set[c] != negated {
				t.takes[c][i/64] |= 1 << (i % 64)
			}
		}
		text = text[n:]
	}
	return t
}

// find returns the end of the first place in b that the segment matches, or -1.
func (t *table) find(b []byte) (end int) {
	var begun words // bit i: the i+1 bytes before this one match the first i+1 characters
	last, bit := (t.size-1)/64, uint64(1)<<((t.size-1)%64)
	for at, c := range b {
		takes, carry := &t.takes[c], uint64(1)
		for i := range last + 1 {
			next := (begun[i]<<1 | carry) & takes[i]
			carry, begun[i] = begun[i]>>63, next
		}
		if begun[last]&bit != 0 {
			return at + 1
		}
	}
	return -1
}
