package exec

import "github.com/dunlin-cache/dunlin/node/engine"

// Worker is what the requests of one loop share. It belongs to that loop.
type Worker struct {
	Count Counters

	// Scratch space of handlers, valid during one command.
	Number [32]byte
	Body   []byte   // give it back by keepBody
	Views  [][]byte // of values in the engine; give them back by keepViews
	Probes [MaxAhead]engine.Probe

	freePins []*heldPin
}

// MaxAhead is how many requests, or keys of one request, are looked up together.
const MaxAhead = 32

// MaxBodyKept is how large a reply's scratch space is kept for the next one.
const MaxBodyKept = 1 << 20

// maxViewsKept is for how many views room is kept.
const maxViewsKept = 1 << 10

// KeepBody gives scratch space back that a command has grown.
func (w *Worker) KeepBody(body []byte) {
	w.Body = body[:0]
	if cap(body) > MaxBodyKept {
		w.Body = nil
	}
}

// KeepViews gives back views that a command no longer uses.
func (w *Worker) KeepViews(views [][]byte) {
	if clear(views); cap(views) <= maxViewsKept {
		w.Views = views[:0]
	}
}
