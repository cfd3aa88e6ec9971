package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// what a command answers of each field.
type what uint8

const (
	fields what = 1 << iota
	values
)

// hGetAll: HGETALL key
func hGetAll(r *exec.Request) { replyAll(r, fields|values) }

// hKeys: HKEYS key
func hKeys(r *exec.Request) { replyAll(r, fields) }

// hVals: HVALS key
func hVals(r *exec.Request) { replyAll(r, values) }

func replyAll(r *exec.Request, w what) {
	withCounted(r, func(h hash) { h.replyAll(w) })
}

// appendHeader appends the header of a reply with so many fields.
func (w what) appendHeader(dst []byte, r *exec.Request, n int) []byte {
	if w == fields|values {
		return resp.AppendMap(dst, r.Version(), n)
	}
	return resp.AppendArray(dst, n)
}

// append appends what is answered of a field of a packed hash.
func (w what) append(dst []byte, field, value shape.Item) []byte {
	var number shape.Decimal
	if w&fields != 0 {
		dst = resp.AppendBulk(dst, field.Text(&number))
	}
	if w&values != 0 {
		dst = resp.AppendBulk(dst, value.Text(&number))
	}
	return dst
}

// appendTo appends what is answered of a field.
func (w what) appendTo(t *exec.Text, field, value shape.Item) {
	if w&fields != 0 {
		t.Element(field)
	}
	if w&values != 0 {
		t.Element(value)
	}
}

// reply answers what is answered of a field. It returns false if there is no room for the reply.
func (w what) reply(r *exec.Request, field, value shape.Item) (fits bool) {
	return (w&fields == 0 || r.ReplyElement(field)) && (w&values == 0 || r.ReplyElement(value))
}

// packedRoom is how many bytes of a reply a packed hash takes at most.
const packedRoom = exec.LineRoom + shape.MaxPacked + 2*shape.MaxEntries*(len("$1024\r\n\r\n")+20)

func (h *hash) replyAll(w what) {
	r := h.r
	switch {
	case h.big && exec.IsLong(h.table.Len(), h.table.V.Bytes()):
		h.replyPinned(w.appendHeader(nil, r, h.len()), func(t *exec.Text, e shape.Element) {
			w.appendTo(t, e.Key, e.Value)
		})
	case h.big:
		if !r.Room(exec.LineRoom) {
			return
		}
		r.Out = w.appendHeader(r.Out, r, h.len())
		for number := range h.table.V.Len(blocks) {
			h.table.Each(number, func(e shape.Element) {
				w.reply(r, e.Key, e.Value)
			})
		}
	case !r.Room(packedRoom):
	default:
		r.Out = w.appendHeader(r.Out, r, h.len())
		if h.found {
			h.packed.Each(0, func(_ int, field, value shape.Item, _ int64) bool {
				r.Out = w.append(r.Out, field, value)
				return true
			})
		}
	}
}

// replyPinned answers a long hash in slices: head, and then what each appends for its fields.
func (h *hash) replyPinned(head []byte, each func(to *exec.Text, e shape.Element)) {
	t, number := h.table, 0
	h.r.ReplyPinnedText(t.V, head, func(pin *engine.ValuePin, to *exec.Text) (done bool) {
		for t.Pin = pin; number < pin.Len(blocks) && !to.IsFull(); number++ {
			t.Each(number, func(e shape.Element) { each(to, e) })
		}
		return number == pin.Len(blocks)
	})
}
