package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// A small stream is the value of a record: what it knows besides its entries, and a block, or nothing if it
// has no entry.
//
//	0 │ last │ max deleted │ added │ block
//	1     uvarints           uvarint
//
// It has no groups, and its block no dead entries and nothing unused.
type small struct {
	meta
	blk block
}

// readSmall is a view of a record's value, which was checked when it came into this process.
func readSmall(value []byte) (s small) {
	r := reader{rest: value[1:]}
	s.last, s.maxDeleted, s.added = r.id(), r.id(), r.uvarint()
	if len(r.rest) > 0 {
		s.blk = block(r.rest)
	}
	return s
}

// append appends the record's value.
func (s *small) append(dst []byte) []byte {
	dst = append(dst, 0)
	for _, n := range [...]uint64{s.last.Ms, s.last.Seq, s.maxDeleted.Ms, s.maxDeleted.Seq, s.added} {
		dst = binary.AppendUvarint(dst, n)
	}
	if s.blk != nil {
		dst = append(dst, s.blk[:s.blk.used()]...)
	}
	return dst
}

// metaLen is how many bytes stand in front of the block.
func (s *small) metaLen() int {
	n := 1
	for _, x := range [...]uint64{s.last.Ms, s.last.Seq, s.maxDeleted.Ms, s.maxDeleted.Seq, s.added} {
		n += uvarintLen(x)
	}
	return n
}

// roomOf is how many bytes the block gets in a big stream.
func (s *small) roomOf() int { return max(s.blk.used(), maxBlock/2) }

func (s *small) len() int {
	if s.blk == nil {
		return 0
	}
	return s.blk.live()
}

// checkRecord reports whether bytes from elsewhere, of any content, are a small stream.
func checkRecord(value []byte) error {
	r := reader{rest: value}
	kind := r.byte()
	last, _, _ := r.id(), r.id(), r.uvarint()
	b := block(r.rest)
	switch {
	case r.bad || kind != 0 || len(value) > shape.MaxPacked:
		return shape.ErrMalformed
	case len(b) == 0:
		return nil
	case !b.check(false) || b.used() != len(b) || b.live() == 0 || b.dead() > 0 || last.less(b.last().id):
		return shape.ErrMalformed
	}
	return nil
}
