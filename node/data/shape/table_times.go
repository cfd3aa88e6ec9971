package shape

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// ReserveTimes takes the memory to give times to the elements of some keys, as Reserve does for
// Set. After an error the table is as it was.
func (t *Table) ReserveTimes(w *Work, keys [][]byte) error {
	n := t.V.Len(t.Blocks)
	if n == 0 {
		return nil
	}
	if t.V.MayAdjust(len(keys)*(1+expirySize)) != nil {
		more := 0
		for _, key := range keys {
			if b, at, found := t.lookup(key); found && t.element(b, at).ExpireAt == 0 {
				more += 1 + expirySize
			}
		}
		if err := t.V.MayAdjust(more); err != nil {
			return err
		}
	}
	w.touched, w.sizes = w.touched[:0], w.sizes[:0]
	for _, key := range keys {
		w.touched = append(w.touched, touched{bucket(t.V.Hash(key), n), expirySize, 1})
	}
	w.gather()
	for i := range w.touched {
		x := &w.touched[i]
		b := block(t.V.Part(t.Blocks, x.number))
		need := b.need() + min(x.bytes, b.count()*expirySize)
		if b.items() == t.Items {
			need += b.count()
		}
		if need > maxBlock {
			return ErrCrowded
		}
		if x.bytes = 0; need > len(b) {
			x.bytes = need
			w.sizes = append(w.sizes, need)
		}
	}
	return t.growTouched(w)
}

// SetExpireAt has the element of a key, which has not expired, expire at a time: unix milliseconds,
// 0 for never. It reports whether there is one. ReserveTimes was called for it unless the time is
// 0. engine.ErrMemory: nothing was reserved, and nothing has changed.
func (t *Table) SetExpireAt(key []byte, expireAt int64) (found bool, err error) {
	b, at, found := t.lookup(key)
	if !found || t.isDue(t.expireAt(b, at)) {
		return false, nil
	}
	old := t.entryOf(b, at)
	if expireAt == 0 && !old.expires {
		return true, nil
	}
	size := 0
	if expireAt != 0 {
		size = expirySize
	}
	before := 0
	if old.expires {
		before = expirySize
	}
	wider := 0
	if b.items() == t.Items {
		wider = b.count()
	}
	if b.need()+wider+size-before > len(b) {
		return true, engine.ErrMemory
	}
	b = t.V.Edit(t.Blocks, bucket(t.V.Hash(key), t.V.Len(t.Blocks)))
	state := t.state()
	if wider > 0 {
		b.widen()
		state.addBytes(wider)
	}
	end := old.off + old.rest - before
	b.stretch(end, before, size)
	t.putExpiry(b, b.slot(at.entry)[tagFront:], end, expireAt)
	state.addBytes(size - before)
	state.addExpiring(size/expirySize - before/expirySize)
	return true, nil
}

// NoteExpireAt adds to the delta in w that an element got a time, or lost it.
func (t *Table) NoteExpireAt(w *Work, key []byte, expireAt int64) {
	if !t.V.Fed() {
		return
	}
	w.delta = appendString(append(w.delta, deltaTime), key)
	time := int64(0)
	if expireAt != 0 {
		time = max(1, expireAt-t.V.Base())
	}
	w.delta = binary.AppendVarint(w.delta, time)
}

// setTime applies a delta of NoteExpireAt.
func (t *Table) setTime(w *Work, d *deltaReader, key []byte) (at int64, err error) {
	if time := d.varint(); time != 0 {
		at = max(1, t.V.Base()+time)
	}
	if d.bad {
		return 0, ErrMalformed
	}
	keys := [1][]byte{key}
	if err := t.ReserveTimes(w, keys[:]); err != nil {
		return 0, err
	}
	_, err = t.SetExpireAt(key, at)
	return at, err
}
