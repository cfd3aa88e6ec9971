package ring

// PartitionSet is a set of partitions: partition p is bit p%8 of byte p/8. Members send each other
// these 512 bytes unchanged. The zero value is empty.
type PartitionSet [Partitions / 8]byte

// AllPartitions returns the set of every partition.
func AllPartitions() (s PartitionSet) {
	s.AddFrom(0)
	return s
}

// DecodePartitionSet returns the set that a member sent as b. The result is a view of b and valid
// as long as b is. ok is false if b has the wrong length.
func DecodePartitionSet(b []byte) (s *PartitionSet, ok bool) {
	if len(b) != len(PartitionSet{}) {
		return nil, false
	}
	return (*PartitionSet)(b), true
}

// Has reports whether p is in s.
func (s *PartitionSet) Has(p uint16) bool { return s[p/8]>>(p%8)&1 != 0 }

// Add adds p.
func (s *PartitionSet) Add(p uint16) { s[p/8] |= 1 << (p % 8) }

// Remove removes p.
func (s *PartitionSet) Remove(p uint16) { s[p/8] &^= 1 << (p % 8) }

// Empty reports whether s contains no partition.
func (s *PartitionSet) Empty() bool { return *s == PartitionSet{} }

// AddFrom adds every partition from first on; nothing if first is Partitions or more.
func (s *PartitionSet) AddFrom(first int) {
	for ; first%8 != 0; first++ {
		s.Add(uint16(first))
	}
	for i := first / 8; i < len(s); i++ {
		s[i] = 0xFF
	}
}

// AddAll adds the partitions of other.
func (s *PartitionSet) AddAll(other *PartitionSet) {
	for i := range s {
		s[i] |= other[i]
	}
}

// RemoveAll removes the partitions of other.
func (s *PartitionSet) RemoveAll(other *PartitionSet) {
	for i := range s {
		s[i] &^= other[i]
	}
}

// Intersect returns the partitions that are in both s and other.
func (s *PartitionSet) Intersect(other *PartitionSet) (both PartitionSet) {
	for i := range s {
		both[i] = s[i] & other[i]
	}
	return both
}
