package node

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A large value cannot always be changed where it is: it has outgrown its place, or a reply is being sent from it. To make
// room for a new one and copy would hold up the loop and the shard for as long as that takes. So a goroutine makes the new
// value from the pinned old one, and the command is executed again when it is there: if the key still has what the new value
// was made from, that is published in no time, and if not, it begins anew.
//
//	APPEND ─> patch ─> rewriteLater ··· run: stage, copy ··· endRewrite ─> patch: same value? ─> SetStaged
//	                        ^                                                │ no
//	                        └────────────────────────────────────────────────┘

const (
	// rewriteFrom is how many bytes may be copied, or taken from others, under the shard's lock: some 0.1 ms.
	rewriteFrom = 256 << 10
	// rewriteTries is how often a value is made anew because it has changed meanwhile. Then the lock is held.
	rewriteTries = 3
	// rewriteStep is after how many bytes run looks whether the node closes.
	rewriteStep = 1 << 20
)

// rewrite is a new value for a key, made from an old one and a patch.
type rewrite struct {
	args   [][]byte // of the command
	upload *upload  // its large argument
	tries  int

	pin            engine.Pin // the old value, if it is large
	small          []byte     // a copy of it, if not
	found          bool       // there was one
	length, offset int        // of the new value, and where the patch lies in it
	patch          []byte

	staged engine.Staged
	err    error
}

// rewriteLater makes the new value of the command's key. Argument i is the patch.
func (r *request) rewriteLater(t engine.Txn, item engine.Item, found bool, length, offset, i int) {
	cn := r.conn
	w := &rewrite{args: cloneArgs(r.args), found: found, length: length, offset: offset}
	if last := r.rewrite; last != nil {
		w.tries, last.upload = last.tries+1, nil
	}
	if found {
		pin, large := t.Pin(item)
		if w.pin = pin; !large {
			w.small = bytes.Clone(item.Value())
		}
	}
	if w.upload = r.upload; w.upload != nil {
		r.upload, cn.upload = nil, nil
		cn.socket.Stream(false)
	}
	w.patch, _ = valueOf(w.args, w.upload, i)
	cn.answering = true
	cn.socket.Pause()
	cn.node.goJob(func() {
		w.err = w.run(cn.node)
		cn.worker.loop.Post(func() { cn.endRewrite(w) })
	})
}

// run makes the value, outside the loops.
func (w *rewrite) run(n *Node) (err error) {
	if w.staged, err = n.engine.Stage(w.args[1], w.length); err != nil {
		return err
	}
	old := w.old()
	end := min(w.offset, len(old))
	if err = w.write(n, old[:end]); err == nil {
		err = w.staged.Skip(w.offset - end)
	}
	if err == nil {
		err = w.write(n, w.patch)
	}
	if err == nil {
		err = w.write(n, old[min(w.offset+len(w.patch), len(old)):])
	}
	return err
}

func (w *rewrite) old() []byte {
	if w.pin.Live() {
		return w.pin.Value()
	}
	return w.small
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

func (w *rewrite) dropValues() {
	if w.pin.Live() {
		w.pin.Release()
	}
	if w.staged.Live() {
		w.staged.Discard()
	}
}

// isOf says whether the value was made from what the key has now.
func (w *rewrite) isOf(item engine.Item, found bool) bool {
	switch {
	case !found || !w.found:
		return found == w.found
	case w.pin.Live():
		return w.pin.Holds(item)
	}
	return bytes.Equal(w.small, item.Value())
}

// publish is the end of a rewrite. It returns false if the value is to be changed otherwise.
func (r *request) publish(t engine.Txn, item engine.Item, found bool) bool {
	w := r.rewrite
	if w == nil || w.err != nil || !w.isOf(item, found) {
		return false
	}
	expireAt := int64(0)
	if found {
		expireAt = item.ExpireAt()
	}
	if err := t.SetStaged(&w.staged, engine.TypeString, expireAt); err != nil {
		r.replyStoreError(err)
	} else {
		r.replyInt(int64(w.length))
	}
	return true
}

// wantsRewrite says whether it would take too long to make the value length bytes long and write a patch to it. What
// finds no memory beside the old value is done under the lock after all: the old one's memory may then be used.
func (r *request) wantsRewrite(t engine.Txn, item engine.Item, found bool, length, patch int) bool {
	if w := r.rewrite; w != nil && (w.err != nil || w.tries >= rewriteTries) {
		return false
	}
	cost := patch
	if found {
		cost += t.ResizeCost(item, length)
	} else {
		cost += length
	}
	return cost > rewriteFrom && r.node.engine.IsLarge(len(r.args[1]), length)
}
