package node

import (
	"github.com/dunlin-cache/dunlin/internal/hyperloglog"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// maxUnion is how many HyperLogLogs one command may merge: some 10 µs each, for which the loop stands still. Redis has no
// such limit, and can be held up for seconds by naming one key a million times.
const maxUnion = 8192

// pfAdd: PFADD key [element...]
func pfAdd(r *request) {
	key, elements := r.args[1], r.args[2:]
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.findSketch(t, key)
	switch {
	case !ok:
	case found && hyperloglog.IsDense(item.Value()):
		r.addDense(t, item, elements)
	default:
		r.addSparse(t, item, found, elements)
	}
}

// addSparse adds to a copy of a sparse value, or to a new one, which may become dense.
func (r *request) addSparse(t engine.Txn, item engine.Item, found bool, elements [][]byte) {
	value, ok := r.sketchCopy(item, found)
	if !ok {
		return
	}
	changed := !found
	for _, e := range elements {
		var more bool
		var err error
		if value, more, err = hyperloglog.Add(value, e); err != nil {
			r.fail(errCorruptSketch)
			return
		}
		changed = changed || more
	}
	if !changed || r.storeSketch(t, item, found, value) {
		r.replyBool(changed)
	}
}

// addDense adds to a dense value where it is.
func (r *request) addDense(t engine.Txn, item engine.Item, elements [][]byte) {
	value, changed := item.Value(), false
	for _, e := range elements {
		if !hyperloglog.Changes(value, e) {
			continue
		}
		if !changed {
			// Only now: a value that stays what it is must not be taken for a new one.
			var err error
			if value, err = t.Resize(r.args[1], len(value)); err != nil {
				r.replyStoreError(err)
				return
			}
			hyperloglog.Invalidate(value)
			changed = true
		}
		_, _, _ = hyperloglog.Add(value, e) // a dense value has no errors
	}
	r.replyBool(changed)
}

// findSketch looks a HyperLogLog up. ok is false if the key holds something else; the error is then already answered.
func (r *request) findSketch(t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	item, found, ok = r.findString(t, key)
	if ok && found && !hyperloglog.Is(item.Value()) {
		r.fail(errNoSketch)
		return item, true, false
	}
	return item, found, ok
}

// sketchCopy is a HyperLogLog in the worker's scratch space, with room to become dense: that of the item, or an empty one. ok
// is false if it is too long to be one; the error is then already answered.
func (r *request) sketchCopy(item engine.Item, found bool) (value []byte, ok bool) {
	w := r.worker
	if cap(w.body) < hyperloglog.DenseSize {
		w.body = make([]byte, 0, hyperloglog.MaxSize)
	}
	if !found {
		return hyperloglog.AppendEmpty(w.body[:0]), true
	}
	if len(item.Value()) > hyperloglog.MaxSize {
		r.fail(errCorruptSketch)
		return nil, false
	}
	return append(w.body[:0], item.Value()...), true
}

// storeSketch stores a value that was changed in the scratch space under the command's key. ok is false if there is no
// memory; the error is then already answered.
func (r *request) storeSketch(t engine.Txn, item engine.Item, found bool, value []byte) (ok bool) {
	defer r.worker.keepBody(value)
	hyperloglog.Invalidate(value)
	expireAt := int64(0)
	if found {
		expireAt = item.ExpireAt()
	}
	err := t.Set(r.args[1], value, engine.TypeString, expireAt)
	if err != nil {
		r.replyStoreError(err)
	}
	return err == nil
}

// pfCount: PFCOUNT key...
func pfCount(r *request) {
	t := r.lock()
	defer t.Unlock()
	if len(r.keys) > 1 {
		if all, _, ok := r.union(t); ok {
			r.replyInt(all.Count())
		}
		return
	}
	item, found, ok := r.findSketch(t, r.args[1])
	r.worker.count.lookup(found)
	if !ok {
		return
	}
	if !found {
		r.replyInt(0)
		return
	}
	value := item.Value()
	n, cached := hyperloglog.Cached(value)
	if !cached {
		var err error
		if n, err = hyperloglog.Count(value); err != nil {
			r.fail(errCorruptSketch)
			return
		}
		if value, err = t.Resize(r.args[1], len(value)); err == nil {
			hyperloglog.Cache(value, n)
		}
	}
	r.replyInt(n)
}

// union merges what the command's keys have; they are in one slot. dense: so is one of them. ok is false after an error,
// which is then already answered.
func (r *request) union(t engine.Txn) (all *hyperloglog.Registers, dense, ok bool) {
	if len(r.keys) > maxUnion {
		r.fail(errUnionTooLarge)
		return nil, false, false
	}
	if r.worker.union == nil {
		r.worker.union = new(hyperloglog.Registers)
	}
	all = r.worker.union
	clear(all[:])
	for _, at := range r.keys {
		item, found, ok := r.findSketch(t, r.args[at])
		r.worker.count.lookup(found)
		if !ok {
			return nil, false, false
		}
		if !found {
			continue
		}
		dense = dense || hyperloglog.IsDense(item.Value())
		if all.Merge(item.Value()) != nil {
			r.fail(errCorruptSketch)
			return nil, false, false
		}
	}
	return all, dense, true
}

// pfMerge: PFMERGE destination [source...]
func pfMerge(r *request) {
	t := r.lock()
	defer t.Unlock()
	all, dense, ok := r.union(t)
	if !ok {
		return
	}
	item, found := t.Peek(r.args[1])
	value, _ := r.sketchCopy(item, found) // as long as union found it
	var err error
	if dense {
		value, err = hyperloglog.Promote(value)
	}
	if err == nil {
		value, err = all.Store(value)
	}
	if err != nil {
		r.fail(errCorruptSketch)
		return
	}
	if r.storeSketch(t, item, found, value) {
		r.replyOK()
	}
}
