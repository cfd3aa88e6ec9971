package lists

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// collection is what DUMP and RESTORE ask about lists.
var collection = exec.Collection{
	Kind:      rdb.KindList,
	Packed:    &shape.PackedList,
	Own:       shape.ListOwn,
	Form:      func(bool, engine.Parts) rdb.Writer { return rdb.Writer{Form: rdb.FormList} },
	Len:       shape.TreeLen,
	Piece:     piece,
	AddPacked: restorePacked,
	Add:       restoreParts,
}

// pieceElements is how many elements a piece has, unless they are long.
const pieceElements = 128

func piece(_ engine.Parts, pin *engine.ValuePin, place int, f func(rdb.Element)) (next int, done bool) {
	l, end, left := shape.PinnedList(pin), place+pieceElements, exec.RunBytes
	next = place
	var number shape.Decimal // not one for each element: f makes it escape
	l.Walk(place, func(x shape.Entry) bool {
		f(rdb.Element{First: x.First.Text(&number)})
		next++
		left -= x.First.Size()
		return next < end && left > 0
	})
	return next, next >= l.Len()
}

func restorePacked(p *shape.Pack, x rdb.Element) (fits bool, err error) {
	return p.Insert(p.Len(), 0, x.First, nil), nil
}

func restoreParts(v engine.Parts, w *shape.Work, all []rdb.Element) error {
	var elements [exec.AddAtOnce][]byte
	for i := range all {
		elements[i] = all[i].First
	}
	l := shape.ListOf(v, w)
	return l.Insert(l.Len(), elements[:len(all)], false)
}
