package node

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A large value cannot always be changed where it is: it has outgrown its place, or a reply is being sent from it. To make
// room for a new one and copy would hold up the loop and the shard for as long as that takes. So a goroutine makes the new
// value from the pinned old one, and the command is executed again when it is there: if the keys still have what the new value
// was made from, that is published in no time, and if not, it begins anew.
//
//	APPEND ─> resize ─> rewriteLater ··· change.run: stage, copy ··· endRewrite ─> resize: same value? ─> SetStaged
//	                         ^                                                      │ no
//	                         └──────────────────────────────────────────────────────┘

const (
	// rewriteFrom is how many bytes may be copied, or taken from others, under the shard's lock: some 0.1 ms.
	rewriteFrom = 256 << 10
	// rewriteTries is how often a value is made anew because it has changed meanwhile. Then the lock is held.
	rewriteTries = 3
	// rewriteStep is after how many bytes a goroutine looks whether the node closes.
	rewriteStep = 1 << 20
)

// rewrite is a new value for a key. A nil one is none.
type rewrite struct {
	args   [][]byte // of the command
	upload *upload  // its large argument
	tries  int

	sources []source // what the value is made from
	engine  *engine.Engine
	charged int64 // by the engine, for copies among the sources
	staged  engine.Staged
	small   []byte // the value, if it cannot be staged
	err     error
}

// source is what a key had when a rewrite began.
type source struct {
	found bool
	pin   engine.Pin // if it is large
	small []byte     // a copy, if it is not
}

// change is what becomes of a value: it gets another length, and a piece is written at an offset.
type change struct {
	length, offset int
	patch          int // the argument that is the piece; 0: none
}

func sourceOf(t engine.Txn, item engine.Item, found bool) (s source) {
	if s.found = found; found {
		pin, large := t.Pin(item)
		if s.pin = pin; !large {
			s.small = bytes.Clone(item.Value())
		}
	}
	return s
}

func (s *source) value() []byte {
	if s.pin.Live() {
		return s.pin.Value()
	}
	return s.small
}

// isOf says whether that is what the key has now.
func (s *source) isOf(item engine.Item, found bool) bool {
	switch {
	case !found || !s.found:
		return found == s.found
	case s.pin.Live():
		return s.pin.Holds(item)
	}
	return bytes.Equal(s.small, item.Value())
}

func (s *source) drop() {
	if s.pin.Live() {
		s.pin.Release()
	}
}

// rewriteLater makes the new value of the command's key.
func (r *request) rewriteLater(t engine.Txn, item engine.Item, found bool, c change) {
	w := r.newRewrite()
	w.sources = []source{sourceOf(t, item, found)}
	patch, _ := valueOf(w.args, w.upload, c.patch)
	if c.patch == 0 {
		patch = nil
	}
	w.start(r.conn, func(n *Node) error { return c.run(w, n, patch) })
}

// newRewrite takes over the command that is executed.
func (r *request) newRewrite() *rewrite {
	r.mayWait()
	w := &rewrite{args: cloneArgs(r.args)}
	if last := r.rewrite; last != nil {
		w.tries, last.upload = last.tries+1, nil
	}
	if w.upload = r.upload; w.upload != nil {
		r.upload, r.conn.upload = nil, nil
		r.conn.socket.Stream(false)
	}
	return w
}

// start has a goroutine make the value. Meanwhile the connection waits.
func (w *rewrite) start(cn *conn, run func(n *Node) error) {
	cn.answering = true
	cn.socket.Pause()
	cn.node.goJob(func() {
		w.err = run(cn.node)
		cn.worker.loop.Post(func() { cn.endRewrite(w) })
	})
}

// run makes the value, outside the loops.
func (c *change) run(w *rewrite, n *Node, patch []byte) (err error) {
	if w.staged, err = n.engine.Stage(w.args[1], c.length); err != nil {
		return err
	}
	old := w.sources[0].value()
	end := min(c.offset, len(old))
	if err = w.write(n, old[:end]); err == nil {
		err = w.staged.Skip(c.offset - end)
	}
	if err == nil {
		err = w.write(n, patch)
	}
	if err == nil {
		err = w.write(n, old[min(c.offset+len(patch), len(old)):])
	}
	return err
}

func (w *rewrite) write(n *Node, b []byte) error {
	for len(b) > 0 {
		if err := n.ctx.Err(); err != nil {
			return err
		}
		piece := b[:min(len(b), rewriteStep)]
		if err := w.staged.Write(piece); err != nil {
			return err
		}
		b = b[len(piece):]
	}
	return nil
}

// endRewrite executes the command again, on the loop.
func (cn *conn) endRewrite(w *rewrite) {
	defer w.drop()
	cn.resume(func(r *request) {
		r.args, r.upload, r.rewrite = w.args, w.upload, w
		r.worker.count.commands[command.Row(r.args).ID]-- // it was counted
		r.dispatch()
		r.upload, r.rewrite = nil, nil
	})
}

// drop gives up what was not used.
func (w *rewrite) drop() {
	w.dropValues()
	if w.upload != nil {
		w.upload.drop()
	}
}

// charge takes n bytes of the limit for what is copied. False: there are none.
func (w *rewrite) charge(e *engine.Engine, n int) bool {
	if !e.Charge(int64(n)) {
		return false
	}
	w.engine = e
	w.charged += int64(n)
	return true
}

// result is the value.
func (w *rewrite) result() []byte {
	if w.staged.Live() {
		return w.staged.Value()
	}
	return w.small
}

func (w *rewrite) dropValues() {
	if w == nil {
		return
	}
	if w.charged > 0 {
		w.engine.Refund(w.charged)
		w.charged = 0
	}
	for i := range w.sources {
		w.sources[i].drop()
	}
	if w.staged.Live() {
		w.staged.Discard()
	}
}

func (w *rewrite) failed() bool { return w != nil && w.err != nil }

// isOf says whether the value is there and was made from what the command's key has now.
func (w *rewrite) isOf(item engine.Item, found bool) bool {
	return w != nil && w.err == nil && w.sources[0].isOf(item, found)
}

// publish gives the value to the command's key, which keeps its expiry.
func (r *request) publish(t engine.Txn, item engine.Item, found bool) error {
	expireAt := int64(0)
	if found {
		expireAt = item.ExpireAt()
	}
	return t.SetStaged(&r.rewrite.staged, engine.TypeString, expireAt)
}

// wantsRewrite says whether a change would take too long here. What finds no memory beside the old value is done under the
// lock after all: the old one's memory may then be used.
func (r *request) wantsRewrite(t engine.Txn, item engine.Item, found bool, c change) bool {
	if w := r.rewrite; w != nil && (w.err != nil || w.tries >= rewriteTries) || r.holding {
		return false
	}
	cost := 0
	if c.patch > 0 {
		patch, _ := r.value(c.patch)
		cost = len(patch)
	}
	if found {
		cost += t.ResizeCost(item, c.length)
	} else {
		cost += c.length
	}
	return cost > rewriteFrom && r.node.engine.IsLarge(len(r.args[1]), c.length)
}
