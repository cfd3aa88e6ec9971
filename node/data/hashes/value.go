package hashes

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hash is the value of the command's key, as a handler sees it under one lock.
type hash struct {
	r      *exec.Request
	txn    engine.Txn
	item   engine.Item
	found  bool
	big    bool // it has parts: table; otherwise packed, if it was found
	table  shape.Table
	packed shape.Packed

	changed bool // by setTime
}

// open looks up the hash that a command changes. If the key holds another type, open answers the
// error and ok is false.
func open(r *exec.Request, t engine.Txn) (h hash, ok bool) {
	h = hash{r: r, txn: t}
	h.item, h.found, ok = r.FindOf(t, r.Args[1], engine.TypeHash)
	if ok && h.found {
		h.see()
	}
	return h, ok
}

// read is open for a command that reads: it also counts the hit or miss.
func read(r *exec.Request, t engine.Txn) (h hash, ok bool) {
	h, ok = open(r, t)
	r.Lookup(h.found, r.Args[1])
	return h, ok
}

// see finds out of what form the value is.
func (h *hash) see() {
	var v engine.Parts
	if v, h.big = h.txn.Parts(h.item); h.big {
		h.table = tableOf(v, h.r.Now)
		return
	}
	h.packed = shape.ReadPacked(&shape.PackedHash, h.item.Value())
}

// len returns how many fields the hash has. It counts those that have expired and are not
// removed yet, see withCounted.
func (h *hash) len() int {
	switch {
	case !h.found:
		return 0
	case h.big:
		return h.table.Len()
	}
	return h.packed.Len()
}

// element is what a hash has under a field.
type element struct {
	value    shape.Item // a view, valid until the hash changes
	expireAt int64      // unix milliseconds; 0: never
	at       int        // of a packed hash, which entry it is
}

// get returns the element of a field.
func (h *hash) get(field []byte) (e element, ok bool) {
	switch {
	case !h.found:
		return e, false
	case h.big:
		x, ok := h.table.Get(field)
		return element{value: x.Value, expireAt: x.ExpireAt}, ok
	}
	keys, at := [1][]byte{field}, [1]int{}
	if h.packed.Find(keys[:], at[:]); at[0] < 0 {
		return e, false
	}
	return element{value: h.packed.Item(at[0], 1), at: at[0]}, true
}

// replyValue answers the value of a field. It returns false if
// there is no room for the reply.
func (h *hash) replyValue(e element, ok bool) (fits bool) {
	r := h.r
	switch {
	case !ok:
		if !r.Room(exec.LineRoom) {
			return false
		}
		r.ReplyNull()
	default:
		return r.ReplyElement(e.value)
	}
	return true
}

// isDue reports whether the hash has fields that have expired and are not removed yet.
func (h *hash) isDue() bool {
	return h.found && h.big && h.table.V.Due() != 0 && h.table.V.Due() <= h.r.Now
}

// expireAt is when the key expires, 0 if never.
func (h *hash) expireAt() int64 {
	if h.found {
		return h.item.ExpireAt()
	}
	return 0
}

// withHash has f answer a command that reads one hash.
func withHash(r *exec.Request, f func(h hash)) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if h, ok := read(r, t); ok {
		f(h)
	}
}

// withCounted is withHash for a command whose answer depends on how many fields there are: first
// all that have expired are removed. Each lookup removes some, so in a big hash that takes several
// runs, for which the command holds the partition: time stands still, and two walks over the hash
// are enough.
func withCounted(r *exec.Request, f func(h hash)) {
	locks := r.LockElements()
	defer locks.Release()
	run := locks.First
	t, _, ok := locks.At(run)
	if !ok {
		locks.Stop(run, 0)
		return
	}
	h, ok := open(r, t)
	if ok && h.isDue() {
		locks.Hold()
		locks.Stop(run+1, 0)
		return
	}
	r.Lookup(h.found, r.Args[1])
	if ok {
		f(h)
	}
}
