package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// collection is what DUMP and RESTORE ask about sorted sets.
var collection = exec.Collection{
	Kind:      rdb.KindSortedSet,
	Packed:    &shape.PackedZSet,
	Own:       own,
	Form:      func(bool, engine.Parts) rdb.Writer { return rdb.Writer{Form: rdb.FormSortedSet} },
	Len:       shape.TreeLen,
	Piece:     piece,
	Score:     scoreOf,
	AddPacked: restorePacked,
	Add:       restoreParts,
}

// pieceMembers is how many members a piece has, unless they are long.
const pieceMembers = 128

func piece(v engine.Parts, pin *engine.ValuePin, place int, f func(rdb.Element)) (next int, done bool) {
	b, end, left := openBig(v, pin), place+pieceMembers, exec.RunBytes
	next = place
	var number shape.Decimal // not one for each element: f makes it escape
	b.tree.Walk(place, func(x shape.Entry) bool {
		f(rdb.Element{First: x.First.Text(&number), Score: scoreOf(x.Rank)})
		next++
		left -= x.First.Size()
		return next < end && left > 0
	})
	return next, next >= b.tree.Len()
}

func restorePacked(p *shape.Pack, x rdb.Element) (fits bool, err error) {
	keys, at := [1][]byte{x.First}, [1]int{}
	if p.Find(keys[:], at[:]); at[0] >= 0 {
		return false, rdb.ErrFormat
	}
	return putPacked(p, x.First, 0, false, x.Score), nil
}

func restoreParts(v engine.Parts, w *shape.Work, all []rdb.Element) error {
	b := openBig(v, nil)
	for _, x := range all {
		old, there := b.tree.Lookup(x.First)
		if there {
			return rdb.ErrFormat
		}
		if err := b.set(x.First, old, false, x.Score); err != nil {
			return err
		}
		b.note(w, x.First, x.Score)
	}
	w.Note(v)
	return nil
}
