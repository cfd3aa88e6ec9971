package node

import "github.com/dunlin-cache/dunlin/ring"

// partitionSet is a set of partitions, as it travels in DUNLIN EACH: partition p
// is bit p%8 of byte p/8.
type partitionSet [ring.Partitions / 8]byte

// allPartitions is every partition. Read only.
var allPartitions = func() (s partitionSet) {
	for i := range s {
		s[i] = 0xFF
	}
	return s
}()

func (s *partitionSet) has(p uint16) bool { return s[p/8]>>(p%8)&1 != 0 }
func (s *partitionSet) add(p uint16)      { s[p/8] |= 1 << (p % 8) }
func (s *partitionSet) remove(p uint16)   { s[p/8] &^= 1 << (p % 8) }

// addAll adds what the other one has.
func (s *partitionSet) addAll(other *partitionSet) {
	for i := range s {
		s[i] |= other[i]
	}
}
