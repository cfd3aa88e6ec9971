package shape

import (
	"encoding/binary"
	"sync"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A delta says what has changed in a table, for engine.Parts.Note and engine.Form.Apply. It is a
// sequence of changes, each a byte and what it needs:
//
//	set     length │ key │ length │ value            value: of a table of two items
//	until   length │ key │ length │ value │ time     relative to the value's base
//	delete  length │ key
//	time    length │ key │ time or 0
//	piece   length │ key │ total │ offset │ time or 0 │ length │ bytes
//
// A piece is a part of a string that is too long for one delta, in a snapshot. The piece at offset
// 0 comes first and sets the element, with zeros where the other pieces will be.
//
// Lengths and times are varints. An element's latest change holds, so deltas of a snapshot and of
// changes may be applied in the order in which they were made.
const (
	deltaSet = iota
	deltaUntil
	deltaDelete
	deltaPiece
	deltaTime
)

const (
	// longString is the length from which Dump sends a string in pieces.
	longString = 16 << 10
	// applyAtOnce is how many elements Apply reserves together.
	applyAtOnce = 64
)

// NoteSet adds to the delta in w that an element was set. Note logs the delta.
func (t *Table) NoteSet(w *Work, key, value []byte, expireAt int64) {
	switch {
	case !t.V.Fed():
	case len(w.delta)+len(key)+len(value) > engine.MaxNote:
		w.tooLong = true
	default:
		w.delta = t.appendSet(w.delta, key, value, expireAt)
	}
}

// NoteDelete adds to the delta in w that an element was deleted.
func (t *Table) NoteDelete(w *Work, key []byte) {
	if t.V.Fed() {
		w.delta = appendString(append(w.delta, deltaDelete), key)
	}
}

// Note logs the delta in w, once for all changes of a command under one lock. A command that has
// changed the table always calls it, even if nothing was added.
func (w *Work) Note(v engine.Parts) {
	if w.tooLong {
		v.NoteTooLong()
	} else {
		v.Note(w.delta)
	}
	w.tooLong = false
	if w.delta = w.delta[:0]; cap(w.delta) > maxKept {
		w.delta = nil
	}
}

// Forget drops the delta in w, because nothing has changed.
func (w *Work) Forget() { w.delta, w.tooLong = w.delta[:0], false }

// maxKept is how many bytes of scratch memory are kept.
const maxKept = 64 << 10

func (t *Table) appendSet(dst, key, value []byte, expireAt int64) []byte {
	if expireAt == 0 {
		dst = append(dst, deltaSet)
	} else {
		dst = append(dst, deltaUntil)
	}
	dst = appendString(dst, key)
	if t.Items > 1 {
		dst = appendString(dst, value)
	}
	if expireAt != 0 {
		dst = binary.AppendVarint(dst, expireAt-t.V.Base())
	}
	return dst
}

func appendString(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// works are for Apply, which belongs to no loop.
var works = sync.Pool{New: func() any { return new(Work) }}

// Apply applies a delta to the table, whatever the delta has. It takes its memory; after an error
// the value is to be deleted. soonest is when the first of the elements that were set expires, 0 if
// none does.
func (t *Table) Apply(delta []byte) (soonest int64, err error) {
	w := works.Get().(*Work)
	defer works.Put(w)
	return t.apply(w, delta)
}

// apply applies a delta in steps of applyAtOnce elements: so it keeps little scratch memory, however
// long the delta is.
func (t *Table) apply(w *Work, delta []byte) (soonest int64, err error) {
	d := deltaReader{rest: delta}
	w.args, w.times = w.args[:0], w.times[:0]
	for len(d.rest) > 0 && err == nil {
		kind := d.byte()
		key := d.string()
		switch kind {
		case deltaSet, deltaUntil:
			w.args = append(w.args, key)
			if t.Items > 1 {
				w.args = append(w.args, d.string())
			}
			at := int64(0)
			if kind == deltaUntil {
				at = max(1, t.V.Base()+d.varint())
				soonest = earlier(soonest, at)
			}
			w.times = append(w.times, at)
			if len(w.times) == applyAtOnce {
				err = t.setAll(w, &d)
			}
		case deltaDelete:
			if err = t.setAll(w, &d); err == nil && !d.bad {
				t.Delete(key)
			}
		case deltaPiece:
			if err = t.setAll(w, &d); err == nil {
				var at int64
				at, err = t.setPiece(w, &d, key)
				soonest = earlier(soonest, at)
			}
		case deltaTime:
			if err = t.setAll(w, &d); err == nil {
				var at int64
				at, err = t.setTime(w, &d, key)
				soonest = earlier(soonest, at)
			}
		default:
			return soonest, ErrMalformed
		}
	}
	if err == nil {
		err = t.setAll(w, &d)
	}
	clear(w.args)
	return soonest, err
}

// setAll sets the elements that Apply has read.
func (t *Table) setAll(w *Work, d *deltaReader) error {
	if d.bad {
		return ErrMalformed
	}
	if len(w.times) == 0 {
		return nil
	}
	expires := false
	for _, at := range w.times {
		expires = expires || at != 0
	}
	if err := t.Reserve(w, w.args, expires); err != nil {
		return err
	}
	for i, at := range w.times {
		value := []byte(nil)
		if t.Items > 1 {
			value = w.args[i*t.Items+1]
		}
		if _, err := t.Set(w.args[i*t.Items], value, at); err != nil {
			return err
		}
	}
	w.args, w.times = w.args[:0], w.times[:0]
	return nil
}

// deltaReader reads a delta. It returns zeros when the delta is malformed.
type deltaReader struct {
	rest []byte
	bad  bool
}

func (d *deltaReader) byte() byte {
	if len(d.rest) == 0 {
		d.bad = true
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *deltaReader) uvarint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *deltaReader) varint() int64 {
	n := d.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (d *deltaReader) string() []byte {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	s := d.rest[:n:n]
	d.rest = d.rest[n:]
	return s
}
