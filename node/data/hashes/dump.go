package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// collection is what DUMP and RESTORE ask about hashes.
var collection = exec.Collection{
	Kind:      rdb.KindHash,
	Packed:    &shape.PackedHash,
	Own:       ownSize,
	Form:      form,
	Len:       shape.TableLen,
	Piece:     piece,
	AddPacked: restorePacked,
	Add:       restoreParts,
}

// form is how a hash is dumped. Fields that have expired and were not removed yet are dumped, with
// their times: whoever restores the hash leaves them out.
func form(packed bool, v engine.Parts) rdb.Writer {
	if !packed {
		if t := tableOf(v, 0); t.Expiring() > 0 {
			return rdb.Writer{Form: rdb.FormHashRedis, Soonest: v.Due()}
		}
	}
	return rdb.Writer{Form: rdb.FormHash}
}

func piece(v engine.Parts, pin *engine.ValuePin, place int, f func(rdb.Element)) (next int, done bool) {
	t := tableOf(v, 0)
	t.Pin = pin
	var field, value shape.Decimal // not one for each element: f makes them escape
	t.Each(place, func(e shape.Element) {
		f(rdb.Element{First: e.Key.Text(&field), Second: e.Value.Text(&value), ExpireAt: e.ExpireAt})
	})
	return place + 1, place+1 >= pin.Len(blocks)
}

func restorePacked(p *shape.Pack, x rdb.Element) (fits bool, err error) {
	if x.ExpireAt != 0 {
		return false, nil
	}
	keys, at := [1][]byte{x.First}, [1]int{}
	if p.Find(keys[:], at[:]); at[0] >= 0 {
		return false, rdb.ErrFormat
	}
	return p.Insert(p.Len(), 0, x.First, x.Second), nil
}

func restoreParts(v engine.Parts, w *shape.Work, all []rdb.Element) error {
	t := tableOf(v, 0) // nothing has expired, so a field that is there twice is found
	var pairs [2 * exec.AddAtOnce][]byte
	soonest := int64(0)
	for i, x := range all {
		pairs[2*i], pairs[2*i+1] = x.First, x.Second
		if x.ExpireAt != 0 && (soonest == 0 || x.ExpireAt < soonest) {
			soonest = x.ExpireAt
		}
	}
	if err := t.Reserve(w, pairs[:2*len(all)], soonest != 0); err != nil {
		return err
	}
	for _, x := range all {
		added, err := t.Set(x.First, x.Second, x.ExpireAt)
		if err != nil {
			return err
		}
		if !added {
			return rdb.ErrFormat
		}
		t.NoteSet(w, x.First, x.Second, x.ExpireAt)
	}
	w.Note(v)
	noteDue(v, soonest)
	return nil
}
