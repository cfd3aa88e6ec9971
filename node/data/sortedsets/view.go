package sortedsets

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// View is a sorted set of either form to be read. The zero View is an empty set. Items and scores
// that it gives are valid until the next change under the shard's lock.
type View struct {
	length int
	packed shape.Packed
	big    big
	isBig  bool
}

func viewPacked(value []byte) (s View) {
	s.packed = shape.ReadPacked(&shape.PackedZSet, value)
	s.length = s.packed.Len()
	return s
}

func viewBig(b big) View { return View{length: b.tree.Len(), big: b, isBig: true} }

// Len is how many members the set has.
func (s *View) Len() int { return s.length }

// Score is the score of a member.
func (s *View) Score(member []byte) (score float64, ok bool) {
	if s.isBig {
		return s.big.score(member)
	}
	at := s.entry(member)
	if at < 0 {
		return 0, false
	}
	return scoreOf(s.packed.Rank(at)), true
}

// entry is the position of a member of a packed set, -1 if it has none.
func (s *View) entry(member []byte) int {
	if s.length == 0 {
		return -1
	}
	keys, at := [1][]byte{member}, [1]int{}
	s.packed.Find(keys[:], at[:])
	return at[0]
}

// Position is where a member stands, and its score.
func (s *View) Position(member []byte) (position int, score float64, ok bool) {
	if !s.isBig {
		if position = s.entry(member); position < 0 {
			return 0, 0, false
		}
		return position, scoreOf(s.packed.Rank(position)), true
	}
	at, ok := s.big.tree.Lookup(member)
	if !ok {
		return 0, 0, false
	}
	return s.big.tree.Position(at), scoreOf(at.Rank), true
}

// find is the position of a member with a rank, or where it would stand.
func (s *View) find(rank uint64, member []byte) (position int, found bool) {
	if s.isBig {
		return s.big.tree.Find(rank, member)
	}
	return findPacked(&s.packed, s.length, rank, member)
}

// findPacked is find of a packed set of n members.
func findPacked(p *shape.Packed, n int, rank uint64, member []byte) (position int, found bool) {
	low, high := 0, n
	var room [192]byte
	for low < high {
		middle := (low + high) / 2
		r := p.Rank(middle)
		c := 0
		switch {
		case r < rank:
			c = -1
		case r > rank:
			c = 1
		default:
			item := p.Item(middle, 0)
			c = bytes.Compare(item.Append(room[:0]), member)
		}
		switch {
		case c == 0:
			return middle, true
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// at is the member at a position, which is below the length, and its rank.
func (s *View) at(position int) (member shape.Item, rank uint64) {
	if s.isBig {
		x := s.big.tree.At(position)
		return x.First, x.Rank
	}
	return s.packed.Item(position, 0), s.packed.Rank(position)
}

// Span is the members from one position to another; backwards: the last one comes first.
type Span struct {
	from, to  int
	backwards bool
}

// Skip leaves out the first n members of a span, and returns how many are left.
func (p *Span) Skip(n int) int {
	p.from += n
	return p.len()
}

func (p *Span) len() int { return max(0, p.to-p.from) }

// Each calls f for the members of a Span, until it returns false.
func (s *View) Each(p Span, f func(member shape.Item, score float64) bool) {
	left := p.len()
	if left == 0 {
		return
	}
	of := func(x shape.Entry) bool {
		left--
		return f(x.First, scoreOf(x.Rank)) && left > 0
	}
	switch {
	case s.isBig && p.backwards:
		s.big.tree.WalkBack(p.to, of)
	case s.isBig:
		s.big.tree.Walk(p.from, of)
	case p.backwards:
		for i := p.to - 1; i >= p.from && f(s.packed.Item(i, 0), scoreOf(s.packed.Rank(i))); i-- {
		}
	default:
		s.packed.Each(p.from, func(i int, member, _ shape.Item, _ int64) bool {
			left--
			return f(member, scoreOf(s.packed.Rank(i))) && left > 0
		})
	}
}

// InScores is the Span of the members in a range of scores.
func (s *View) InScores(r scores) Span {
	if s.length == 0 || r.min > r.max {
		return Span{}
	}
	low, high := rankOf(r.min), rankOf(r.max)+1
	if r.minOpen {
		low++
	}
	if r.maxOpen {
		high--
	}
	if low >= high {
		return Span{}
	}
	from, _ := s.find(low, nil)
	to, _ := s.find(high, nil)
	return Span{from: from, to: to}
}

// FromScore is the span of the members from a score up to another one, which is not inside.
func (s *View) FromScore(min, max float64) Span {
	return s.InScores(scores{min: min, max: max, maxOpen: true})
}

// inNames is the Span of the members in a range of names.
func (s *View) inNames(n names) Span {
	if s.length == 0 {
		return Span{}
	}
	_, rank := s.at(0)
	return Span{from: s.bound(rank, n.min, n.minEnd, n.minOpen), to: s.bound(rank, n.max, n.maxEnd, !n.maxOpen)}
}

// bound is the position of a name, or the one behind it.
func (s *View) bound(rank uint64, name []byte, at end, after bool) int {
	switch at {
	case front:
		return 0
	case behind:
		return s.length
	}
	position, found := s.find(rank, name)
	if found && after {
		position++
	}
	return position
}

// inPositions is the Span of the members between two positions as clients give them: those below 0
// count from the end.
func (s *View) inPositions(start, stop int64) Span {
	n := int64(s.length)
	if start < 0 {
		start = max(start+n, 0)
	}
	if stop < 0 {
		stop += n
	}
	stop = min(stop, n-1)
	if start > stop || start >= n {
		return Span{}
	}
	return Span{from: int(start), to: int(stop) + 1}
}

// limit leaves out the first members of a Span, and those behind so many. count < 0: all.
func (p *Span) limit(offset, count int64) {
	n := int64(p.len())
	if offset < 0 || offset >= n {
		p.to = p.from
		return
	}
	if count < 0 || count > n-offset {
		count = n - offset
	}
	if p.backwards {
		p.to -= int(offset)
		p.from = p.to - int(count)
	} else {
		p.from += int(offset)
		p.to = p.from + int(count)
	}
}
