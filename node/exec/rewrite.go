package exec

import (
	"bytes"
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A large value cannot always be changed in place: it has outgrown its memory, or a reply is being
// sent from it. Making room for a new value and copying the old one would block the loop and the
// shard. So a goroutine makes the new value from the pinned old one, and then the command runs
// again. If the keys still hold what the new value was made from, the command publishes it at once.
// If not, the work starts over.
//
//	APPEND ─> resize ─> rewriteLater ··· change.run: stage, copy ··· Again ─> resize: same value? ─> SetStaged
//	                         ^                                                     │ no
//	                         └─────────────────────────────────────────────────────┘

const (
	// RewriteFrom is how many bytes may be copied or evicted under the shard's lock: about 0.1 ms.
	RewriteFrom = 256 << 10
	// RewriteTries is how often a goroutine makes a value again because its source has changed.
	// After that, the change happens under the lock.
	RewriteTries = 3
	// RewriteStep is the number of bytes after which a goroutine checks whether the node closes.
	RewriteStep = 1 << 20
)

// Rewrite is a command whose new value a goroutine makes. Methods of a nil Rewrite report false and
// do nothing.
type Rewrite struct {
	Args   [][]byte // of the command
	upload *Upload  // its large argument
	Tries  int      // how often the value was made before

	Sources []Source // what the goroutine makes the value from
	Staged  engine.Staged
	Built   interface{ End() } // not nil: a value that was built aside
	Small   []byte             // the value, if it cannot be staged
	Typ     engine.Type        // of the value, if the command alone does not determine it
	Verdict bool               // of a command that makes no value: what was found out about the first source
	Err     error

	Engine    *engine.Engine
	partition uint16
	database  uint8
	holds     bool  // the command is of a transaction that holds the partition
	charged   int64 // to the memory limit, for copies among the sources
	heap      Heap
	host      Host
	kept      int64         // charged to heap, for Args and small sources
	refused   bool          // there was no memory for them
	held      bool          // somebody else has held the partition for too long
	waited    time.Duration // Request.Waited
	run       func(ctx context.Context) error
}

// Source is what a key held when a rewrite began.
type Source struct {
	found bool
	pin   engine.Pin // of a large value
	Small []byte     // a copy of any other
}

// Change describes a change to a string: its new length, and a piece to write at an offset, all in
// bytes.
type Change struct {
	Length, Offset int
	Patch          int // index in Args of the piece; 0: none
}

// SourceOf returns what an item holds as a source: pinned if it is large, else copied. The caller
// must Drop it.
func SourceOf(t engine.Txn, item engine.Item, found bool) (s Source) {
	if s.found = found; found {
		pin, large := t.Pin(item)
		if s.pin = pin; !large {
			s.Small = bytes.Clone(item.Value())
		}
	}
	return s
}

// Value returns the source's bytes, valid until Drop.
func (s *Source) Value() []byte {
	if s.pin.Live() {
		return s.pin.Value()
	}
	return s.Small
}

// IsOf reports whether the key still holds the source.
func (s *Source) IsOf(item engine.Item, found bool) bool {
	switch {
	case !found || !s.found:
		return found == s.found
	case s.pin.Live():
		return s.pin.Holds(item)
	}
	return bytes.Equal(s.Small, item.Value())
}

// Drop releases the source's pin, if it has one.
func (s *Source) Drop() {
	if s.pin.Live() {
		s.pin.Release()
	}
}

// NewRewrite copies the present command, and becomes the owner of its upload. The caller fills in
// Sources and calls Start, or End to give up. If there is no memory for the copy, Start answers
// that.
func (r *Request) NewRewrite() *Rewrite {
	w := &Rewrite{
		Args: r.Args, Engine: r.Engine, partition: r.Partition, database: r.Database, holds: r.InTransaction || r.Hold != nil,
		heap: r.Heap, host: r.Host, waited: r.Waited,
	}
	size := int64(len(r.Args)) * ArgSize
	for _, arg := range r.Args {
		size += int64(len(arg))
	}
	if w.refused = !w.heap.Charge(size); !w.refused {
		w.kept = size
		w.Args = CloneArgs(r.Args)
	}
	if last := r.Rewrite; last != nil {
		w.Tries, last.upload = last.Tries+1, nil
	}
	if w.upload = r.Upload; w.upload != nil {
		r.giveUpload()
	}
	return w
}

// NewResult returns a Rewrite for a value that a goroutine makes for the present command, which
// does not run again: it is not started. args are kept. The caller calls DropValues in the end.
func (r *Request) NewResult(args [][]byte) *Rewrite {
	return &Rewrite{Args: args, Engine: r.Engine, partition: r.Partition, database: r.Database}
}

// Start has a goroutine call run, which makes the value. Then the command runs again.
func (w *Rewrite) Start(r *Request, run func(ctx context.Context) error) {
	size := int64(0)
	for i := range w.Sources {
		size += int64(len(w.Sources[i].Small))
	}
	if w.refused = w.refused || !w.heap.Charge(size); w.refused {
		w.End()
		r.Fail(ErrOOM)
		return
	}
	w.kept += size
	w.run = run
	r.Host.Later(w)
}

// Run makes the value, in a goroutine.
func (w *Rewrite) Run(ctx context.Context) {
	w.Err = w.run(ctx)
}

// Await waits for the end of the hold that somebody else has on the partition, if there is one.
func (w *Rewrite) Await(ctx context.Context) {
	if h := w.Engine.Holder(w.partition); h != nil && !w.holds {
		w.held = !w.host.AwaitHold(ctx, h, &w.waited)
	}
}

// Reply executes the command again.
func (w *Rewrite) Reply(r *Request) {
	if w.held {
		r.Fail(ErrHeld)
		return
	}
	r.Args, r.Upload, r.Rewrite, r.Database = w.Args, w.upload, w, w.database
	r.Waited = max(r.Waited, w.waited) // the connection may have waited since
	r.Host.Again()
	r.Upload, r.Rewrite, r.Waited = nil, nil, 0
}

// Move hands the command over to another Rewrite, which executes it again.
func (w *Rewrite) Move() *Rewrite {
	next := new(Rewrite)
	*next, *w = *w, Rewrite{}
	return next
}

// End frees the values and the upload that the command has not used.
func (w *Rewrite) End() {
	w.DropValues()
	if w.upload != nil {
		w.upload.Drop()
	}
	if w.kept > 0 {
		w.heap.Refund(w.kept)
		w.kept = 0
	}
}

// rewriteLater has a goroutine make the new value of the command's key.
func (r *Request) rewriteLater(t engine.Txn, item engine.Item, found bool, c Change) {
	w := r.NewRewrite()
	w.Sources = []Source{SourceOf(t, item, found)}
	patch, _ := w.Value(c.Patch)
	if c.Patch == 0 {
		patch = nil
	}
	w.Start(r, func(ctx context.Context) error { return c.run(ctx, w, patch) })
}

// run makes the changed value, in a goroutine.
func (c *Change) run(ctx context.Context, w *Rewrite, patch []byte) (err error) {
	if err = w.Stage(w.Args[1], c.Length); err != nil {
		return err
	}
	old := w.Sources[0].Value()
	end := min(c.Offset, len(old))
	if err = w.Write(ctx, old[:end]); err == nil {
		err = w.Staged.Skip(c.Offset - end)
	}
	if err == nil {
		err = w.Write(ctx, patch)
	}
	if err == nil {
		err = w.Write(ctx, old[min(c.Offset+len(patch), len(old)):])
	}
	return err
}

// Value is Request.Value for the goroutine.
func (w *Rewrite) Value(i int) ([]byte, error) { return valueOf(w.Args, w.upload, i) }

// Write appends b, which is copied, to the staged value. It stops with ctx's error when ctx ends.
func (w *Rewrite) Write(ctx context.Context, b []byte) error {
	for len(b) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := b[:min(len(b), RewriteStep)]
		if err := w.Staged.Write(piece); err != nil {
			return err
		}
		b = b[len(piece):]
	}
	return nil
}

// Stage begins the new value, of n bytes, under a key of the command.
func (w *Rewrite) Stage(key []byte, n int) (err error) {
	w.Staged, err = w.Engine.Stage(engine.Section(w.partition, w.database), key, n)
	return err
}

// Charge reports whether n bytes of the memory limit were left, and takes them for copies.
// DropValues gives them back.
func (w *Rewrite) Charge(n int) bool {
	if !w.Engine.Charge(int64(n)) {
		return false
	}
	w.charged += int64(n)
	return true
}

// Result returns the new value, valid until SetStaged or DropValues.
func (w *Rewrite) Result() []byte {
	if w.Staged.Live() {
		return w.Staged.Value()
	}
	return w.Small
}

// DropValues frees the sources and the new value.
func (w *Rewrite) DropValues() {
	if w == nil {
		return
	}
	if w.charged > 0 {
		w.Engine.Refund(w.charged)
		w.charged = 0
	}
	for i := range w.Sources {
		w.Sources[i].Drop()
	}
	if w.Staged.Live() {
		w.Staged.Discard()
	}
	if w.Built != nil {
		w.Built.End()
	}
}

// failed reports whether the goroutine could not make the value.
func (w *Rewrite) failed() bool { return w != nil && w.Err != nil }

// IsOf reports whether the new value is complete and was made from what the command's key holds
// now.
func (w *Rewrite) IsOf(item engine.Item, found bool) bool {
	return w != nil && w.Err == nil && w.Sources[0].IsOf(item, found)
}

// MayRewrite reports whether a goroutine may make the value: not after it failed, at most
// RewriteTries times, and not for a command that is half done, because it would begin again.
func (r *Request) MayRewrite() bool {
	w := r.Rewrite
	if r.Rest != nil {
		return false
	}
	return w == nil || w.Err == nil && w.Tries < RewriteTries
}
