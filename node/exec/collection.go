package exec

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Collection is what DUMP and RESTORE ask of a type whose values are packed or have parts. Its
// functions know neither the payload's format nor whether they are called in a loop or a goroutine.
type Collection struct {
	Kind   rdb.Kind
	Packed *shape.Kind
	Own    int // bytes that a value with parts has of its own

	// Form is how a value is dumped; packed says that it is no value with parts.
	Form func(packed bool, v engine.Parts) rdb.Writer
	// Len is how many elements Piece finds, by the own bytes of a value with parts.
	Len func(own []byte) int
	// Piece calls f for some elements of a value with parts as a pin has it, from a place on, about
	// as many as lie in one block. It returns where to go on; the first place is 0. The strings of
	// an element are valid until f returns.
	Piece func(v engine.Parts, pin *engine.ValuePin, place int, f func(rdb.Element)) (next int, done bool)
	// Score is the score of an entry's rank. It is nil but for a type whose packed values are
	// ranked.
	Score func(rank uint64) float64

	// AddPacked adds an element to a packed value. fits is false if the element makes it a value
	// with parts; the error is rdb.ErrFormat if the element is there already.
	AddPacked func(p *shape.Pack, x rdb.Element) (fits bool, err error)
	// Add adds elements to a value with parts, at most AddAtOnce of them, takes the memory for
	// them, and notes them. The error is rdb.ErrFormat if one is there already.
	Add func(v engine.Parts, w *shape.Work, all []rdb.Element) error
}

// AddAtOnce is how many elements are added to a value under one lock.
const AddAtOnce = 64

// AppendPacked appends the payload of a packed value.
func (c *Collection) AppendPacked(dst, value []byte) []byte {
	p := shape.ReadPacked(c.Packed, value)
	w := c.Form(true, engine.Parts{})
	dst = w.AppendHead(dst, p.Len())
	c.each(&p, func(x rdb.Element) { dst = w.AppendElement(dst, x) })
	return w.AppendFoot(dst)
}

// each calls f for the elements of a packed value. Their strings are valid until f returns.
func (c *Collection) each(p *shape.Packed, f func(x rdb.Element)) {
	var a, b shape.Decimal // not one pair for each element: f makes them escape
	p.Each(0, func(entry int, first, second shape.Item, expireAt int64) bool {
		x := rdb.Element{First: first.Text(&a), ExpireAt: expireAt}
		if c.Packed.Items > 1 {
			x.Second = second.Text(&b)
		}
		if c.Score != nil {
			x.Score = c.Score(p.Rank(entry))
		}
		f(x)
		return true
	})
}

// Pack reads a value into p, from the first element on. fits is false if it makes a value with
// parts. Elements that have expired by now are left out; empty says that all have.
func (c *Collection) Pack(p *shape.Pack, all *rdb.Elements, now int64) (fits, empty bool, err error) {
	p.Open(c.Packed, nil, now)
	for x, ok := all.Next(); ok; x, ok = all.Next() {
		if x.ExpireAt != 0 && x.ExpireAt <= now {
			continue
		}
		if fits, err = c.AddPacked(p, x); !fits || err != nil {
			return false, false, err
		}
	}
	return true, p.Len() == 0, all.Err()
}
