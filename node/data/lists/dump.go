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
	Len:       shape.ListLen,
	Piece:     piece,
	AddPacked: func(p *shape.Pack, x rdb.Element) (bool, error) { return p.Insert(p.Len(), 0, x.First, nil), nil },
	Add:       restoreParts,
}

// pieceElements is how many elements a piece has.
const pieceElements = 128

func piece(_ engine.Parts, pin *engine.ValuePin, place int, f func(rdb.Element)) (next int, done bool) {
	tree, end := shape.PinnedList(pin), place+pieceElements
	next = tree.Walk(place, func(x shape.Entry) bool {
		if place == end {
			return false
		}
		var number shape.Decimal
		f(rdb.Element{First: x.First.Text(&number)})
		place++
		return true
	})
	return next, next >= tree.Len()
}

func restoreParts(v engine.Parts, w *shape.Work, all []rdb.Element) error {
	l := shape.ListOf(v, w)
	var elements [exec.AddAtOnce][]byte
	for i := range all {
		elements[i] = all[i].First
	}
	return l.Insert(l.Len(), elements[:len(all)], false)
}
