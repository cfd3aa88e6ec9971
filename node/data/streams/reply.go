package streams

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// A string or an entry is one step. What takes more:
const (
	pinSteps     = 16 // a string that is pinned
	pendingSteps = 3  // a pending entry
	groupSteps   = 4  // a group or a consumer
	lookupSteps  = 4  // to find one by its name
	deliverSteps = 16 // to look for what a consumer gets of a stream, to note it, and to make the consumer
)

// slice is a part of a reply that is made under one lock.
type slice struct {
	exec.Text
	steps int // that are left
	bytes int // how long the text gets
	more  int // what an entry has behind its strings, which the caller appends
}

func newSlice(r *exec.Request) slice {
	return slice{Text: r.NewText(r.Worker.Body), steps: sliceSteps, bytes: sliceBytes}
}

// full reports whether the slice has enough.
func (w *slice) full() bool { return w.steps <= 0 || len(w.Bytes) >= w.bytes }

// array appends the header of an array of n elements.
func (w *slice) array(n int) { w.Bytes = resp.AppendArray(w.Bytes, n) }

func (w *slice) int(n int64) { w.Bytes = resp.AppendInt(w.Bytes, n) }

func (w *slice) id(id ID) { w.Bytes = appendBulkID(w.Bytes, id) }

func (w *slice) bulk(text []byte) { w.Bytes = resp.AppendBulk(w.Bytes, text) }

func (w *slice) word(text string) { w.Bytes = resp.AppendBulkString(w.Bytes, text) }

// entry appends an entry, an array of its ID and its strings, from a spot among them on. whole is false
// if the slice was full before the last string: the spot is where the next one goes on.
func (w *slice) entry(id ID, e *entry, at *spot) (whole bool) {
	first := *at == spot{}
	if first {
		w.steps--
		w.array(2 + w.more)
		w.id(id)
		w.array(e.strings())
	}
	begun := false
	whole = true
	e.eachFrom(at, func(_ int, s shape.Item) bool {
		if begun && w.full() {
			whole = false
			return false
		}
		begun = true
		if w.steps--; s.Size() >= exec.LongElement {
			w.steps -= pinSteps
		}
		w.Element(s)
		return true
	})
	if whole {
		*at = spot{}
	}
	return whole
}

// goneEntry appends an entry of which only the ID is known.
func (w *slice) goneEntry(id ID, v resp.Version) {
	w.steps--
	w.array(2)
	w.id(id)
	w.Bytes = resp.AppendNullArray(w.Bytes, v)
}

func appendBulkID(dst []byte, id ID) []byte {
	var text [idLen]byte
	return resp.AppendBulk(dst, appendID(text[:0], id))
}

func replyID(r *exec.Request, id ID) {
	if r.Room(exec.LineRoom) {
		r.Out = appendBulkID(r.Out, id)
	}
}

// answer is the reply of a command that reads.
type answer interface {
	// next appends what comes next, until the slice is full, and reports whether that was the last of it.
	// It keeps its place itself, in copies: the view is another one each time.
	next(v *view, w *slice) (done bool)
	// rewind has next begin again.
	rewind()
	// appendHead appends what stands in front, when next is done.
	appendHead(dst []byte) []byte
}

// reply answers with a: under the present lock if it is short, as that of a packed stream always is, otherwise in
// slices, from a pin and from its beginning.
func (s *stream) reply(a answer) {
	r := s.r
	w := newSlice(r)
	w.steps, w.bytes = math.MaxInt, math.MaxInt
	v, big := s.parts()
	if big {
		w.steps, w.bytes = shortSteps, shortBytes
	}
	a.rewind()
	if done := a.next(&s.view, &w); !done {
		w.Drop()
		r.Worker.KeepBody(w.Bytes)
		replyPinned(r, v, a)
		return
	}
	if r.Room(exec.LineRoom + idLen*2) {
		r.Out = a.appendHead(r.Out)
		r.ReplyText(&w.Text)
	} else {
		w.Drop()
	}
	r.Worker.KeepBody(w.Bytes)
}

func replyPinned(r *exec.Request, v engine.Parts, a answer) {
	a.rewind()
	head := func() []byte { return a.appendHead(nil) }
	r.ReplyPinnedTextCounted(v, head, func(pin *engine.ValuePin, t *exec.Text) (done bool) {
		v, w := pinned(pin), slice{Text: *t, steps: sliceSteps, bytes: sliceBytes}
		done = a.next(&v, &w)
		*t = w.Text
		return done
	})
}
