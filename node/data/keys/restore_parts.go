package keys

import (
	"context"
	"errors"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// restoreSmall is the longest payload of a collection that is read under the shard's lock. What is
// compressed in it has 88 times as much at most.
const restoreSmall = 2 << 10

// restorePacked stores a collection whose payload is short, if it makes a packed value. done is
// false, and nothing has changed, if it does not.
func restorePacked(r *exec.Request, t engine.Txn, typ *exec.Type, payload []byte, at int64) (done bool, err error) {
	if typ.Payloads != nil {
		value, fits, err := typ.Payloads.ReadSmall(r.Worker.Body[:0], payload)
		if !fits || err != nil {
			return err != nil, err
		}
		defer r.Worker.KeepBody(value)
		return true, restoreAs(r, t, at, func() error { return t.Set(r.Args[1], value, typ.ID, at) })
	}
	all, err := rdb.ReadElements(payload)
	if err != nil {
		return true, err
	}
	p := &r.Worker.Pack
	fits, empty, err := typ.Collection.Pack(p, all, r.Now)
	switch {
	case err != nil:
		return true, err
	case !fits:
		return false, nil
	case empty:
		deleteReplaced(r, t)
		return true, nil
	}
	return true, restoreAs(r, t, at, func() error { return t.Set(r.Args[1], p.Bytes(), typ.ID, at) })
}

// aside builds a value with parts from a payload, in a goroutine. Nobody sees the value before the
// command that it belongs to gives it its key.
type aside struct {
	e       *engine.Engine
	section uint16
	typ     *exec.Type
	now     int64
	key     engine.AsideKey
	live    bool // the value is there, or was
	none    bool // all elements have expired
	work    shape.Work

	packed []byte // the value, if it is packed after all
}

// errEvicted is the error for a value that was evicted while it was built.
var errEvicted = errors.New("evicted")

// build reads the payload.
func (a *aside) build(ctx context.Context, w *exec.Rewrite, payload []byte) error {
	if a.typ.Payloads != nil {
		return a.buildFrom(ctx, w, payload)
	}
	all, err := rdb.ReadElements(payload)
	if err != nil {
		return err
	}
	all.Room = w.Charge
	p := new(shape.Pack)
	fits, empty, err := a.typ.Collection.Pack(p, all, a.now)
	switch {
	case err != nil:
		return err
	case fits:
		if a.none = empty; !empty {
			a.packed = p.Bytes()
		}
		return nil
	}
	if all, err = rdb.ReadElements(payload); err != nil {
		return err
	}
	all.Room = w.Charge
	if err := a.begin(); err != nil {
		return err
	}
	return a.addAll(ctx, all)
}

func (a *aside) begin() (err error) {
	t := a.e.Lock(a.section, a.now)
	defer t.Unlock()
	a.key, _, err = t.NewAside(a.typ.ID, a.typ.Own())
	a.live = err == nil
	return err
}

// buildFrom builds the value of a type with Payloads.
func (a *aside) buildFrom(ctx context.Context, w *exec.Rewrite, payload []byte) error {
	value, fits, err := a.typ.Payloads.ReadSmall(nil, payload)
	if fits || err != nil {
		a.packed = value
		return err
	}
	from, err := a.typ.Payloads.Restore(payload, w)
	if err != nil {
		return err
	}
	defer from.Release()
	if err := a.begin(); err != nil {
		return err
	}
	for {
		more, err := from.Read(ctx)
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case !more:
			return a.note(ctx)
		}
		if err := a.addFrom(from); err != nil {
			return err
		}
	}
}

func (a *aside) addFrom(from exec.Restorer) error {
	t := a.e.Lock(a.section, a.now)
	defer t.Unlock()
	v, ok := t.Aside(&a.key)
	if !ok {
		return errEvicted
	}
	return from.Add(t, v)
}

// note logs what was added, as for a snapshot, in slices.
func (a *aside) note(ctx context.Context) error {
	for place, done := (engine.Place{}), false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if place, done, err = a.noteFrom(place); err != nil {
			return err
		}
	}
	return nil
}

func (a *aside) noteFrom(place engine.Place) (next engine.Place, done bool, err error) {
	t := a.e.Lock(a.section, a.now)
	defer t.Unlock()
	v, ok := t.Aside(&a.key)
	switch {
	case !ok:
		return place, false, errEvicted
	case !v.Fed():
		return place, true, nil
	}
	delta, next, done := a.typ.Form.Dump(v, place, nil, noteBytes)
	v.Note(delta)
	return next, done, nil
}

// restoreBytes is about how many bytes of elements are added under one lock.
const restoreBytes = 64 << 10

func (a *aside) addAll(ctx context.Context, all *rdb.Elements) error {
	batch, bytes, some := make([]rdb.Element, 0, exec.AddAtOnce), 0, false
	var text []byte // of the batch
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := a.add(ctx, batch)
		batch, text, bytes, some = batch[:0], text[:0], 0, true
		return err
	}
	for x, ok := all.Next(); ok; x, ok = all.Next() {
		if x.ExpireAt != 0 && x.ExpireAt <= a.now {
			continue
		}
		bytes += len(x.First) + len(x.Second)
		text, x.First = keepText(text, x.First)
		text, x.Second = keepText(text, x.Second)
		if batch = append(batch, x); len(batch) == cap(batch) || bytes >= restoreBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	err := all.Err()
	if err == nil {
		err = flush()
	}
	a.none = !some
	return err
}

// keepText copies a short string, which is valid only until the next element is read. A long one
// ends its batch.
func keepText(text, s []byte) (_, kept []byte) {
	if len(s) >= restoreBytes {
		return text, s
	}
	n := len(text)
	text = append(text, s...)
	return text, text[n:len(text):len(text)]
}

func (a *aside) add(ctx context.Context, batch []rdb.Element) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	staged, err := a.stageLong(ctx, &batch[len(batch)-1])
	if staged.Live() {
		defer func() {
			if staged.Live() {
				staged.Discard()
			}
		}()
	}
	if err != nil {
		return err
	}
	t := a.e.Lock(a.section, a.now)
	defer t.Unlock()
	v, ok := t.Aside(&a.key)
	if !ok {
		return errEvicted
	}
	t.Offer(&staged)
	return a.typ.Collection.Add(v, &a.work, batch)
}

// stageLong stages the string of an element that is too long to be copied under a lock. Then the element
// has a view of what is staged.
func (a *aside) stageLong(ctx context.Context, x *rdb.Element) (st engine.Staged, err error) {
	s := &x.First
	if a.typ.Collection.Kind == rdb.KindHash {
		s = &x.Second
	}
	if len(*s) < restoreBytes {
		return st, nil
	}
	st, view, err := exec.StageElement(ctx, a.e, *s)
	if err == nil {
		*s = view
	}
	return st, err
}

// publish stores the value under the key.
func (a *aside) publish(t engine.Txn, key []byte, at int64) error {
	switch {
	case a.none:
		t.Delete(key)
		return nil
	case a.packed != nil:
		return t.Set(key, a.packed, a.typ.ID, at)
	}
	v, ok := t.Aside(&a.key)
	if !ok {
		return errEvicted
	}
	err := t.Rename(v, key, at)
	if err == nil {
		a.live = false
	}
	return err
}

// End removes the value if it was not published.
func (a *aside) End() {
	if !a.live {
		return
	}
	a.live = false
	t := a.e.Lock(a.section, a.now)
	defer t.Unlock()
	if v, ok := t.Aside(&a.key); ok {
		v.Delete()
	}
}
