package sets

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// collection is what DUMP and RESTORE ask about sets.
var collection = exec.Collection{
	Kind:      rdb.KindSet,
	Packed:    &shape.PackedSet,
	Own:       shape.TableOwn,
	Form:      func(bool, engine.Parts) rdb.Writer { return rdb.Writer{Form: rdb.FormSet} },
	Len:       shape.TableLen,
	Piece:     piece,
	AddPacked: restorePacked,
	Add:       restoreParts,
}

func piece(v engine.Parts, pin *engine.ValuePin, place int, f func(rdb.Element)) (next int, done bool) {
	t := tableOf(v)
	t.Pin = pin
	var number shape.Decimal // not one for each element: f makes it escape
	t.Each(place, func(e shape.Element) {
		f(rdb.Element{First: e.Key.Text(&number)})
	})
	return place + 1, place+1 >= pin.Len(blocks)
}

func restorePacked(p *shape.Pack, x rdb.Element) (fits bool, err error) {
	added, fits := addPacked(p, x.First)
	if fits && !added {
		return false, rdb.ErrFormat
	}
	return fits, nil
}

func restoreParts(v engine.Parts, w *shape.Work, all []rdb.Element) error {
	t := tableOf(v)
	var members [exec.AddAtOnce][]byte
	for i := range all {
		members[i] = all[i].First
	}
	if err := t.Reserve(w, members[:len(all)], false); err != nil {
		return err
	}
	for _, member := range members[:len(all)] {
		added, err := t.Set(member, nil, 0)
		if err != nil {
			return err
		}
		if !added {
			return rdb.ErrFormat
		}
		t.NoteSet(w, member, nil, 0)
	}
	w.Note(v)
	return nil
}
