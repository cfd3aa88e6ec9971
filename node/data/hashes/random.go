package hashes

import (
	"math"
	"math/rand/v2"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hRandField: HRANDFIELD key [count [WITHVALUES]]
func hRandField(r *exec.Request) {
	if len(r.Args) == 2 {
		withCounted(r, func(h hash) {
			field, _, ok := h.random()
			if !ok {
				r.ReplyNull()
				return
			}
			r.ReplyElement(field)
		})
		return
	}
	n, ok := r.IntArg(2)
	if !ok {
		return
	}
	if n == math.MinInt64 {
		r.Fail(errCountRange)
		return
	}
	w := fields
	switch {
	case len(r.Args) > 4, len(r.Args) == 4 && !exec.Is(r.Args[3], "WITHVALUES"):
		r.Fail(exec.ErrSyntax)
		return
	case len(r.Args) == 4:
		if w |= values; n < -math.MaxInt64/2 || n > math.MaxInt64/2 {
			r.Fail(errRange)
			return
		}
	}
	if n < 0 {
		repeated(r, w, -n)
		return
	}
	withCounted(r, func(h hash) { h.distinct(w, int(min(n, int64(h.len())))) })
}

// random returns a field, each with the same probability.
func (h *hash) random() (field, value shape.Item, ok bool) {
	switch {
	case !h.found:
		return field, value, false
	case h.big:
		e, ok := h.table.Random(rand.Uint32N)
		return e.Key, e.Value, ok
	}
	i := rand.IntN(h.packed.Len())
	return h.packed.Item(i, 0), h.packed.Item(i, 1), true
}

// appendList appends the header of a list of n fields, with or without values.
func (w what) appendList(dst []byte, r *exec.Request, n int) []byte {
	if w == fields|values && r.Version() == resp.RESP2 {
		n *= 2
	}
	return resp.AppendArray(dst, n)
}

// replyPair answers a field of such a list. It returns false if there is no room for the reply.
func (w what) replyPair(r *exec.Request, field, value shape.Item) (fits bool) {
	if !r.Room(exec.LineRoom) {
		return false
	}
	if w == fields|values && r.Version() != resp.RESP2 {
		r.Out = resp.AppendArray(r.Out, 2)
	}
	return w.reply(r, field, value)
}

// randomAtOnce is how many random fields are answered in one run at most.
const randomAtOnce = 256

// drawing is how far a command has come that draws fields.
type drawing struct {
	begun bool // to answer; fields that have expired are removed first, see withCounted
	done  int64
}

// repeated answers n random fields, in runs. A field may come several times.
func repeated(r *exec.Request, w what, n int64) {
	locks := r.LockElements()
	defer locks.Release()
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	h, ok := open(r, t)
	if !ok {
		return
	}
	var x drawing
	if kept, ok := locks.State.(*drawing); ok {
		x = *kept
	}
	if !x.begun && h.isDue() {
		locks.Hold()
		locks.Stop(locks.First+1, 0)
		return
	}
	start, before := len(r.Out), r.Produced()-int(locks.Sum)
	if !x.begun {
		x.begun = true
		r.Lookup(h.found, r.Args[1])
		if !h.found {
			n = 0
		}
		if n > maxRandom {
			r.Fail(errReplyTooLarge)
			return
		}
		if !r.Room(exec.LineRoom) {
			return
		}
		r.Out = w.appendList(r.Out, r, int(n))
	}
	for end := min(x.done+randomAtOnce, n); x.done < end && len(r.Out)-start < exec.RunBytes; x.done++ {
		field, value, ok := h.random()
		if !ok {
			r.Undo(start)
			r.Fail(exec.ErrGone)
			return
		}
		if r.Produced()-before > exec.MaxReply {
			r.Undo(start)
			r.Fail(errReplyTooLarge)
			return
		}
		if !w.replyPair(r, field, value) {
			return
		}
	}
	if x.done < n {
		locks.State = &drawing{begun: true, done: x.done}
		locks.Hold()
		locks.Stop(locks.First+1, int64(r.Produced()-before))
		return
	}
	locks.Whole()
}

// maxRandom is how many fields a reply can have that is not too large.
const maxRandom = exec.MaxReply / int64(len("$0\r\n\r\n"))

// distinct answers n different fields, of which the hash has as many at least.
func (h *hash) distinct(w what, n int) {
	r := h.r
	all := h.len()
	if !r.Room(exec.LineRoom) {
		return
	}
	long := h.big && exec.IsLong(n, h.table.V.Bytes()/int64(max(all, 1))*int64(n)) // what is answered
	switch {
	case h.big && !long && h.table.DrawSome(&r.Worker.Work, n, rand.Uint32N):
		r.Out = w.appendList(r.Out, r, n)
		h.table.Drawn(&r.Worker.Work, func(e shape.Element) { w.replyPair(r, e.Key, e.Value) })
	case !h.big || !exec.IsLong(all, h.table.V.Bytes()):
		r.Out = w.appendList(r.Out, r, n)
		pick := exec.Sample{Left: all, Want: n}
		each := func(field, value shape.Item) {
			if pick.Takes() {
				w.replyPair(r, field, value)
			}
		}
		if h.big {
			for number := range h.table.V.Len(blocks) {
				h.table.Each(number, func(e shape.Element) { each(e.Key, e.Value) })
			}
		} else if h.found {
			h.packed.Each(0, func(_ int, field, value shape.Item, _ int64) bool {
				each(field, value)
				return true
			})
		}
	default:
		pick := exec.Sample{Left: all, Want: n}
		version := r.Version()
		h.replyPinned(w.appendList(nil, r, n), func(t *exec.Text, e shape.Element) {
			if !pick.Takes() {
				return
			}
			if w == fields|values && version != resp.RESP2 {
				t.Bytes = resp.AppendArray(t.Bytes, 2)
			}
			w.appendTo(t, e.Key, e.Value)
		})
	}
}
