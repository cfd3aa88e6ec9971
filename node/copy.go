package node

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// rename: RENAME key newkey
func rename(r *request) {
	if r.rename(false) {
		r.replyOK()
	}
}

// renameNX: RENAMENX key newkey
func renameNX(r *request) {
	if r.rename(true) {
		r.replyInt(1)
	}
}

// rename gives the key another name; ifFree: unless that is taken. False: answered already, or to be executed again.
func (r *request) rename(ifFree bool) bool {
	from, to := r.args[1], r.args[2]
	t := r.lock()
	defer t.Unlock()
	item, found := r.find(t, from)
	switch {
	case !found:
		r.fail(errNoKey)
		return false
	case bytes.Equal(from, to):
		if ifFree {
			r.replyInt(0)
		}
		return !ifFree
	case ifFree && exists(t, to):
		r.replyInt(0)
		return false
	case !r.duplicate(t, item):
		return false
	}
	t.Delete(from) // not before: it must not be lost when there is no memory
	return true
}

// copyKey: COPY source destination [DB 0] [REPLACE]
func copyKey(r *request) {
	replace, ok := r.copyOptions(r.args[3:])
	if !ok {
		return
	}
	from, to := r.args[1], r.args[2]
	if bytes.Equal(from, to) {
		r.fail(errSameObject)
		return
	}
	t := r.lock()
	defer t.Unlock()
	item, found := r.find(t, from)
	r.worker.count.lookup(found)
	if !found || !replace && exists(t, to) {
		r.replyInt(0)
		return
	}
	if r.duplicate(t, item) {
		r.replyInt(1)
	}
}

// copyOptions reads the options of COPY; if they are wrong, that is answered.
func (r *request) copyOptions(options [][]byte) (replace, ok bool) {
	for i := 0; i < len(options); i++ {
		switch {
		case is(options[i], "REPLACE"):
			replace = true
		case is(options[i], "DB") && i+1 < len(options):
			i++
			if !r.soleDB(options[i]) {
				return false, false
			}
		default:
			r.fail(errSyntax)
			return false, false
		}
	}
	return replace, true
}

// soleDB tells whether the argument is the number of the only database; if not, that is answered.
func (r *request) soleDB(arg []byte) bool {
	n, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		r.fail(errNotInteger)
	case n < math.MinInt32 || n > math.MaxInt32:
		r.fail(errNotInt32)
	case n != 0:
		r.fail(errDBIndex)
	}
	return ok && n == 0
}

// duplicate stores what the command's first key has under the second, too. False: answered already, or to be executed again,
// since a large value is copied by a goroutine (rewrite.go).
func (r *request) duplicate(t engine.Txn, item engine.Item) bool {
	to, value, w := r.args[2], item.Value(), r.rewrite
	again := !r.holding && (w == nil || w.err == nil && w.tries < rewriteTries)
	var err error
	switch {
	case w.isOf(item, true):
		err = t.SetStaged(&w.staged, item.Type(), item.ExpireAt())
	case again && len(value) > rewriteFrom && r.node.engine.IsLarge(len(to), len(value)):
		r.duplicateLater(t, item)
		return false
	default:
		w.dropValues() // their memory may be what is needed
		err = r.duplicateNow(t, item)
	}
	if err != nil {
		r.replyStoreError(err)
	}
	return err == nil
}

func (r *request) duplicateLater(t engine.Txn, item engine.Item) {
	w := r.newRewrite()
	w.sources = []source{sourceOf(t, item, true)}
	w.start(r.conn, func(n *Node) (err error) {
		value := w.sources[0].value()
		if w.staged, err = n.engine.Stage(w.args[2], len(value)); err == nil {
			err = w.write(n, value)
		}
		return err
	})
}

func (r *request) duplicateNow(t engine.Txn, item engine.Item) error {
	if pin, large := t.Pin(item); large {
		defer pin.Release() // what is pinned stays where it is, whatever is evicted for the copy
		return t.Set(r.args[2], pin.Value(), item.Type(), item.ExpireAt())
	}
	copied := append(r.worker.body[:0], item.Value()...)
	defer r.worker.keepBody(copied)
	return t.Set(r.args[2], copied, item.Type(), item.ExpireAt())
}
