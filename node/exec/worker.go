package exec

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Worker is what the requests of one loop share. It belongs to that loop.
type Worker struct {
	Count Counters
	// Turn has the loop call f when the others that have long work there have had their turns. It
	// is nil for requests that are executed outside of loops.
	Turn func(f func())

	// Scratch space of handlers, valid during one command.
	Number [32]byte
	Body   []byte   // return it with KeepBody
	Views  [][]byte // of values in the engine; return them with KeepViews
	Probes [MaxAhead]engine.Probe
	Pack   shape.Pack // a packed value that is being changed
	Work   shape.Work // of changes of values with parts

	elements Elements // the run of the present command, if it names elements
	freePins []*outputPin
}

// MaxAhead is how many requests, or keys of one request, are looked ahead at together.
const MaxAhead = 32

// MaxBodyKept is the largest scratch space, in bytes, that a worker keeps for its next command.
const MaxBodyKept = 1 << 20

// maxViewsKept is the largest number of views for which a worker keeps room.
const maxViewsKept = 1 << 10

// KeepBody returns the scratch space Body, which a command may have grown, to the worker.
func (w *Worker) KeepBody(body []byte) {
	w.Body = body[:0]
	if cap(body) > MaxBodyKept {
		w.Body = nil
	}
}

// KeepViews returns the scratch space Views to the worker, and forgets the views.
func (w *Worker) KeepViews(views [][]byte) {
	if clear(views); cap(views) <= maxViewsKept {
		w.Views = views[:0]
	}
}
