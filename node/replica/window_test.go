package replica

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// TestWindowMemory checks that the buffer of a window has a bound, and that everything in it is sent
// as it was appended, whatever was acknowledged when.
func TestWindowMemory(t *testing.T) {
	const most = LeastWindow
	rng := rand.New(rand.NewPCG(1, 2))
	var w Window
	var made, sent []byte
	fill := func() (seq uint64) {
		for range 2000 {
			effects := bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(PayloadMost))
			if w.Room() < PayloadMost {
				w.Acknowledge(seq - uint64(rng.IntN(len(w.batches))))
				continue
			}
			seq++
			b := w.Begin(member.VerbEffects, 3, len(effects), seq, 1, 0)
			w.Bulk(effects)
			w.End(b)
			made = append(made, w.buf[len(w.buf)-w.batches[len(w.batches)-1].size:]...)
			if n := len(w.Unsent()); n > 0 {
				n = rng.IntN(n) + 1
				sent = append(sent, w.Unsent()[:n]...)
				w.Sent(n)
			}
			if cap(w.buf) > WindowMemory(w.Most()) {
				t.Fatalf("a buffer of %d bytes, want %d at most", cap(w.buf), WindowMemory(w.Most()))
			}
			w.Acknowledge(min(seq-1, ackedOf(&w)))
		}
		sent = append(sent, w.Unsent()...)
		w.Sent(len(w.Unsent()))
		return seq
	}
	narrow := fill()
	if w.IsWide() || w.Shrink() {
		t.Error("a narrow window was widened")
	}
	w.Acknowledge(narrow)
	w.Widen(most)
	wide := fill()
	if w.Shrink() {
		t.Error("a window shrinks although something is unacknowledged")
	}
	w.Acknowledge(wide)
	if !w.Shrink() || w.IsWide() || w.buf != nil || w.Bytes() != 0 || len(w.Unsent()) != 0 {
		t.Errorf("an empty window is %+v", w)
	}
	if !bytes.Equal(made, sent) {
		t.Errorf("%d bytes were made, and %d others sent", len(made), len(sent))
	}
}

// ackedOf returns the newest batch that was sent wholly.
func ackedOf(w *Window) (seq uint64) {
	at := w.from
	for _, b := range w.batches {
		if at += int64(b.size); at > w.sent {
			return b.seq - 1
		}
	}
	return w.batches[len(w.batches)-1].seq
}
