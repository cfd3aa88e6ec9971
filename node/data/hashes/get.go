package hashes

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// read looks up the hash that a command reads. If the key holds another type, read answers the error
// and ok is false.
func read(r *exec.Request, t engine.Txn) (item engine.Item, found, ok bool) {
	return r.ReadOf(t, r.Args[1], engine.TypeHash)
}

// value returns the value of a field.
func value(r *exec.Request, t engine.Txn, item engine.Item, field []byte) (value shape.Item, ok bool) {
	if v, big := t.Parts(item); big {
		table := tableOf(v, r.Now)
		e, ok := table.Get(field)
		return e.Value, ok
	}
	p := shape.ReadPacked(&shape.PackedHash, item.Value())
	keys, at := [1][]byte{field}, [1]int{}
	if p.Find(keys[:], at[:]); at[0] < 0 {
		return value, false
	}
	return p.Item(at[0], 1), true
}

// hGet: HGET key field
func hGet(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := read(r, t)
	if !ok {
		return
	}
	if found {
		if v, ok := value(r, t, item, r.Args[2]); ok {
			r.ReplyElement(v)
			return
		}
	}
	r.ReplyNull()
}

// hExists: HEXISTS key field
func hExists(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := read(r, t)
	if !ok {
		return
	}
	if found {
		_, found = value(r, t, item, r.Args[2])
	}
	r.ReplyBool(found)
}

// hLen: HLEN key
func hLen(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := read(r, t)
	if !ok {
		return
	}
	n := 0
	if found {
		n = length(t, item, r.Now)
	}
	r.ReplyInt(int64(n))
}

// length returns how many fields the hash has.
func length(t engine.Txn, item engine.Item, now int64) int {
	if v, big := t.Parts(item); big {
		table := tableOf(v, now)
		return table.Len()
	}
	p := shape.ReadPacked(&shape.PackedHash, item.Value())
	return p.Len()
}
