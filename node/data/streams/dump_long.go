package streams

import (
	"bytes"
	"errors"
	"unsafe"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// longEntry is an entry that is read without a lock: its bytes are pinned, or copied if they lie in a
// cell, where they are few.
type longEntry struct {
	held  bool
	id    ID
	entry entry
	own   [][]byte // the strings that are parts of their own
	pins  []engine.Pin
}

// errNoMemory is answered if a payload cannot be made.
var errNoMemory = errors.New(exec.ErrOOM) //nolint:staticcheck // Redis's own text

// hold keeps an entry as it is. The shard is locked.
func (l *longEntry) hold(e *engine.Engine, id ID, x *entry) {
	l.held, l.id, l.entry = true, id, *x
	if x.names != nil {
		l.entry.names = bytes.Clone(x.names)
	}
	l.entry.coded = l.keep(e, x.coded)
	for i := range len(x.own) / partNumber {
		l.own = append(l.own, l.keep(e, x.ownString(i)))
	}
}

func (l *longEntry) keep(e *engine.Engine, s []byte) []byte {
	pin, ok := e.PinView(s)
	if !ok {
		return bytes.Clone(s)
	}
	l.pins = append(l.pins, pin)
	return s
}

func (l *longEntry) release() {
	for i := range l.pins {
		l.pins[i].Release()
	}
	clear(l.own)
	*l = longEntry{own: l.own[:0], pins: l.pins[:0]}
}

// write writes the entry. It reports false if there is no memory for as many strings.
func (l *longEntry) write(e *engine.Engine, w *rdb.StreamWriter) bool {
	size := int64(l.entry.strings()) * (int64(unsafe.Sizeof([]byte(nil))) + 2*int64(unsafe.Sizeof(shape.Decimal{})))
	if !e.Charge(size) {
		return false
	}
	defer e.Refund(size)
	all, text := make([][]byte, 0, l.entry.strings()), []byte(nil)
	l.each(func(s shape.Item) { all, text = appendItem(all, text, s) })
	w.Entry(rdb.StreamEntry{ID: rdb.StreamID(l.id), Strings: all})
	return true
}

// each calls f for the strings, field and value in turn.
func (l *longEntry) each(f func(s shape.Item)) {
	names, rest := l.entry.names, l.entry.coded
	for i := range l.entry.strings() {
		from := &rest
		if l.entry.names != nil && i%2 == 0 {
			from = &names
		}
		s, own, behind, _ := coded(*from)
		if 0 <= own && own < len(l.own) {
			s = shape.ViewItem(l.own[own])
		}
		f(s)
		*from = behind
	}
}
