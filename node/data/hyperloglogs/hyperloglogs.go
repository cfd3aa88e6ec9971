package hyperloglogs

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/hyperloglog"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// MaxUnion limits how many HyperLogLogs one command may merge, because each takes about 10 µs, and
// the command holds its partition meanwhile. Redis has no such limit: naming one key a million times
// blocks it for seconds.
const MaxUnion = 8192

// pfAdd: PFADD key [element...]
func pfAdd(r *exec.Request) {
	elements := r.Args[2:]
	locks := r.LockElements()
	defer locks.Release()
	first := locks.First
	t, key, ok := locks.At(first)
	if !ok {
		locks.Stop(first, locks.Sum)
		return
	}
	item, found, ok := findSketch(r, t, key)
	if !ok {
		return
	}
	var changed bool
	dense := found && hyperloglog.IsDense(item.Value())
	locks.AtOnce = elementsAtOnce(elements[first:], dense)
	end := first + locks.AtOnce
	if slices.ContainsFunc(elements[first:end], isTooLong) {
		r.Fail(exec.ErrKeyTooLong)
		return
	}
	if dense {
		changed, ok = addDense(r, t, item, elements[first:end])
	} else {
		changed, ok = addSparse(r, t, item, found, elements[first:end])
	}
	sum := locks.Sum
	if changed {
		sum = 1
	}
	switch {
	case !ok:
	case end < len(elements):
		locks.Hold()
		locks.Stop(end, sum)
	default:
		if sum > 0 {
			r.Notify(keyevent.String, "pfadd", key)
		}
		r.ReplyInt(sum)
	}
}

// isTooLong reports whether an element is longer than a member of a set can be: it is hashed under the lock.
func isTooLong(element []byte) bool { return len(element) > engine.MaxKeyLen }

// elementsAtOnce returns how many of the elements one run adds: about 0.1 ms.
func elementsAtOnce(elements [][]byte, dense bool) (n int) {
	most := 128 // a sparse value is read from its beginning for each
	if dense {
		most = 2048
	}
	for bytes := 0; n < min(most, len(elements)) && bytes < 64<<10; n++ {
		bytes += len(elements[n])
	}
	return n
}

// addSparse adds the elements to a copy of a sparse value, or to a new value, and stores it. The
// value may become dense. If ok is false, it has answered the error.
func addSparse(r *exec.Request, t engine.Txn, item engine.Item, found bool, elements [][]byte) (changed, ok bool) {
	value, ok := sketchCopy(r, item, found)
	if !ok {
		return false, false
	}
	changed = !found
	for _, e := range elements {
		var more bool
		var err error
		if value, more, err = hyperloglog.Add(value, e); err != nil {
			r.Fail(ErrCorruptSketch)
			return false, false
		}
		changed = changed || more
	}
	return changed, !changed || storeSketch(r, t, item, found, value)
}

// addDense adds the elements to a dense value in place. If ok is false, it has answered the error.
func addDense(r *exec.Request, t engine.Txn, item engine.Item, elements [][]byte) (changed, ok bool) {
	value := item.Value()
	for _, e := range elements {
		if !hyperloglog.Changes(value, e) {
			continue
		}
		if !changed {
			// Only now: an unchanged value must not be streamed as a change.
			var err error
			if value, err = t.Resize(r.Args[1], len(value)); err != nil {
				r.ReplyStoreError(err)
				return false, false
			}
			hyperloglog.Invalidate(value)
			changed = true
		}
		_, _, _ = hyperloglog.Add(value, e) // a dense value has no errors
	}
	return changed, true
}

// findSketch looks a HyperLogLog up. If the key holds something else, it answers the error and ok
// is false.
func findSketch(r *exec.Request, t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	item, found, ok = r.FindString(t, key)
	if ok && found && !hyperloglog.Is(item.Value()) {
		r.Fail(ErrNoSketch)
		return item, true, false
	}
	return item, found, ok
}

// sketchCopy copies the item's HyperLogLog, or an empty one, to the worker's scratch space, with
// room to become dense. If the item is too long to be a HyperLogLog, it answers the error and ok is
// false.
func sketchCopy(r *exec.Request, item engine.Item, found bool) (value []byte, ok bool) {
	w := r.Worker
	if cap(w.Body) < hyperloglog.DenseSize {
		w.Body = make([]byte, 0, hyperloglog.MaxSize)
	}
	if !found {
		return hyperloglog.AppendEmpty(w.Body[:0]), true
	}
	if len(item.Value()) > hyperloglog.MaxSize {
		r.Fail(ErrCorruptSketch)
		return nil, false
	}
	return append(w.Body[:0], item.Value()...), true
}

// storeSketch stores a value from the scratch space under the command's key. If there is no memory,
// it answers the error and ok is false.
func storeSketch(r *exec.Request, t engine.Txn, item engine.Item, found bool, value []byte) (ok bool) {
	defer r.Worker.KeepBody(value)
	hyperloglog.Invalidate(value)
	expireAt := int64(0)
	if found {
		expireAt = item.ExpireAt()
	}
	err := t.Set(r.Args[1], value, engine.TypeString, expireAt)
	if err != nil {
		r.ReplyStoreError(err)
	}
	return err == nil
}

// pfCount: PFCOUNT key...
func pfCount(r *exec.Request) {
	if len(r.Keys) > 1 {
		var all hyperloglog.Registers
		locks := r.LockKeys()
		defer locks.Release()
		if _, _, ok := union(r, &locks, &all); ok {
			r.ReplyInt(all.Count())
		}
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := findSketch(r, t, r.Args[1])
	r.Lookup(found, r.Args[1])
	if !ok {
		return
	}
	if !found {
		r.ReplyInt(0)
		return
	}
	value := item.Value()
	n, cached := hyperloglog.Cached(value)
	if !cached {
		var err error
		if n, err = hyperloglog.Count(value); err != nil {
			r.Fail(ErrCorruptSketch)
			return
		}
		if value, err = t.Resize(r.Args[1], len(value)); err == nil {
			hyperloglog.Cache(value, n)
		}
	}
	r.ReplyInt(n)
}

// unionAtOnce is how many HyperLogLogs are merged in one run: about 0.2 ms.
const unionAtOnce = 16

// merged is what a command that stops has merged so far.
type merged struct {
	all   hyperloglog.Registers
	dense bool
}

// OnlyGathers is the method of exec.Gatherer.
func (*merged) OnlyGathers() {}

// union merges the HyperLogLogs of the command's keys, all in one slot, into all, which must be
// zero. dense reports whether one of them is dense. If ok is false, the command is answered, or goes
// on later; otherwise t is the lock that locks has.
func union(r *exec.Request, locks *exec.KeyLocks, all *hyperloglog.Registers) (t engine.Txn, dense, ok bool) {
	if len(r.Keys) > MaxUnion {
		r.Fail(ErrUnionTooLarge)
		return t, false, false
	}
	locks.AtOnce = unionAtOnce
	before, _ := locks.State.(*merged)
	if before != nil {
		*all, dense = before.all, before.dense
	}
	for i := locks.First; i < len(r.Keys); i++ {
		var key []byte
		if t, key, ok = locks.At(i); !ok {
			if i > 0 {
				if before == nil { // otherwise it has room: a copy for each run would be garbage
					before = new(merged)
				}
				before.all, before.dense = *all, dense
				locks.State = before
			}
			locks.Stop(i, 0)
			return t, false, false
		}
		item, found, ok := findSketch(r, t, key)
		r.Lookup(found, key)
		if !ok {
			return t, false, false
		}
		if !found {
			continue
		}
		dense = dense || hyperloglog.IsDense(item.Value())
		if all.Merge(item.Value()) != nil {
			r.Fail(ErrCorruptSketch)
			return t, false, false
		}
	}
	return t, dense, true
}

// pfMerge: PFMERGE destination [source...]
func pfMerge(r *exec.Request) {
	locks := r.LockKeys()
	defer locks.Release()
	var all hyperloglog.Registers
	t, dense, ok := union(r, &locks, &all)
	if !ok {
		return
	}
	item, found := t.Peek(r.Args[1])
	value, _ := sketchCopy(r, item, found) // union has checked its length
	var err error
	if dense {
		value, err = hyperloglog.Promote(value)
	}
	if err == nil {
		value, err = all.Store(value)
	}
	if err != nil {
		r.Fail(ErrCorruptSketch)
		return
	}
	if storeSketch(r, t, item, found, value) {
		r.Notify(keyevent.String, "pfadd", r.Args[1])
		r.ReplyOK()
	}
}
