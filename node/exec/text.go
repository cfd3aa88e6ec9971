package exec

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// LongElement is the length, in bytes, from which a string of a value is pinned rather than copied
// into a reply: of a few of them, a copy would take longer than a shard may be locked.
const LongElement = 16 << 10

// Text is a part of a reply that is made under a shard's lock, aside. Short strings of values are
// copied, long ones are pinned.
type Text struct {
	Bytes  []byte
	engine *engine.Engine
	pins   []Pinned // At is an index in Bytes
	pinned int      // their total length
}

// NewText returns an empty Text that uses the memory of dst.
func (r *Request) NewText(dst []byte) Text { return Text{Bytes: dst[:0], engine: r.Engine} }

// Element appends a string of a value as a bulk string.
func (t *Text) Element(i shape.Item) {
	if s := i.Long(); i.Size() >= LongElement {
		if pin, ok := t.engine.PinView(s); ok {
			t.Bytes = resp.AppendBulkHeader(t.Bytes, len(s))
			t.pins = append(t.pins, Pinned{At: len(t.Bytes), Bytes: s, Pin: pin})
			t.pinned += len(s)
			t.Bytes = append(t.Bytes, "\r\n"...)
			return
		}
	}
	var number shape.Decimal
	t.Bytes = resp.AppendBulk(t.Bytes, i.Text(&number))
}

// TextWeight is how many bytes Element copies of a string. A pin counts as pinWeight of them.
func TextWeight(i shape.Item) int {
	if i.Size() >= LongElement {
		return pinWeight
	}
	return i.Size()
}

const pinWeight = 1 << 10

// pinsAtOnce is how many strings a slice of a reply pins at most.
const pinsAtOnce = 64

// IsFull reports whether a slice of a reply has enough.
func (t *Text) IsFull() bool { return SliceIsFull(t.Bytes) || len(t.pins) >= pinsAtOnce }

// Len is how many bytes the text has, with those that are pinned.
func (t *Text) Len() int { return len(t.Bytes) + t.pinned }

// ReplyText appends a text to the reply, or drops it if there is no room for it.
func (r *Request) ReplyText(t *Text) (fits bool) {
	if !r.Room(len(t.Bytes)) {
		t.Drop()
		return false
	}
	for i := range t.pins {
		t.pins[i].At += len(r.Out)
	}
	r.Out, r.Pins = append(r.Out, t.Bytes...), append(r.Pins, t.pins...)
	r.pinnedBytes += t.pinned
	t.clear()
	return true
}

// AppendText moves a text behind what was gathered. It reports false if there is no memory: then all of
// the reply is lost.
func (g *Gathered) AppendText(heap Heap, t *Text) (ok bool) {
	before := g.size
	if !g.Append(heap, t.Bytes) {
		t.Drop()
		return false
	}
	for _, p := range t.pins {
		p.At += before
		g.values = append(g.values, p)
	}
	t.clear()
	return true
}

// Drop empties a text that is not to be sent.
func (t *Text) Drop() {
	for i := range t.pins {
		t.pins[i].Release()
	}
	t.clear()
}

func (t *Text) clear() {
	clear(t.pins)
	t.Bytes, t.pins, t.pinned = t.Bytes[:0], t.pins[:0], 0
}
