package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// source is what a command combines: a sorted set, or a plain one, whose members count as having
// the score 1. The zero source is an empty set.
type source struct {
	View     // of a sorted set
	plain    bool
	small    shape.Packed // of a small plain set
	table    shape.Table  // of a big one
	hasParts bool
}

// setScore is the score of all members of a plain set.
const setScore = 1

// isSource reports whether an item can be a source.
func isSource(item engine.Item) bool {
	return item.Type() == engine.TypeZSet || item.Type() == engine.TypeSet
}

func sourceOf(t engine.Txn, item engine.Item) (s source) {
	if item.Type() == engine.TypeZSet {
		s.View = viewOf(t, item)
		return s
	}
	s.plain = true
	if v, ok := t.Parts(item); ok {
		s.table, s.hasParts = shape.SetTable(v), true
	} else {
		s.small = shape.ReadPacked(&shape.PackedSet, item.Value())
	}
	return s
}

// Len is how many members the source has.
func (s *source) Len() int {
	switch {
	case !s.plain:
		return s.View.Len()
	case s.hasParts:
		return s.table.Len()
	}
	return s.small.Len()
}

// Score is the score of a member.
func (s *source) Score(member []byte) (score float64, ok bool) {
	switch {
	case !s.plain:
		return s.View.Score(member)
	case s.hasParts:
		return setScore, s.table.Has(member)
	}
	keys, at := [1][]byte{member}, [1]int{}
	s.small.Find(keys[:], at[:])
	return setScore, at[0] >= 0
}

// each calls f for members from a place on, until it returns false, and returns where to go on; the
// first place is 0. Of a big plain set a place is a block, and f is called for all of that.
func (s *source) each(place int, f func(member shape.Item, score float64) bool) (next int, done bool) {
	switch {
	case !s.plain:
		s.View.Each(Span{from: place, to: s.View.Len()}, func(member shape.Item, score float64) bool {
			place++
			return f(member, score)
		})
	case s.hasParts:
		last := s.table.V.Len(shape.SetBlocks)
		for goesOn := true; goesOn && place < last; place++ {
			s.table.Each(place, func(e shape.Element) { goesOn = f(e.Key, setScore) })
		}
		return place, place == last
	case s.small.Len() > 0:
		s.small.Each(place, func(_ int, member, _ shape.Item, _ int64) bool {
			place++
			return f(member, setScore)
		})
	}
	return place, place == s.Len()
}
