package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hSet: HSET key field value...
func hSet(r *exec.Request) {
	if added, ok := setPairs(r); ok {
		r.ReplyInt(added)
	}
}

// hmSet: HMSET key field value...
func hmSet(r *exec.Request) {
	if _, ok := setPairs(r); ok {
		r.ReplyOK()
	}
}

// setPairs sets the fields that the arguments name, and returns how many are new. If ok is false,
// the command is answered, or goes on later.
func setPairs(r *exec.Request) (added int64, ok bool) {
	if len(r.Args)%2 != 0 {
		r.FailArity()
		return 0, false
	}
	run, ok := r.LockElementRun(r.Args[2:], 2)
	if !ok {
		return 0, false
	}
	defer run.Release()
	h, ok := open(r, run.Txn)
	if !ok || !run.FitsOver(r.Args[2:]) {
		return 0, false
	}
	n, err := h.set(r.Args[2+2*run.First:2+2*run.End], 0, false)
	if err != nil {
		r.ReplyValueError(err)
		return 0, false
	}
	added = run.Sum + int64(n)
	if run.GoesOn(added) {
		return added, false
	}
	r.Notify(keyevent.Hash, "hset", r.Args[1])
	return added, true
}

// hSetNX: HSETNX key field value
func hSetNX(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	h, ok := open(r, t)
	if !ok || !r.UseElements(t) {
		return
	}
	_, there := h.get(r.Args[2])
	if !there {
		if _, err := h.set(r.Args[2:4], 0, false); err != nil {
			r.ReplyValueError(err)
			return
		}
		r.Notify(keyevent.Hash, "hset", r.Args[1])
	}
	r.ReplyBool(!there)
}

// set sets fields to values: field, value, field, value … They expire at a time, never if that is
// 0, or when they did before if keep is true. After an error nothing has changed.
func (h *hash) set(pairs [][]byte, expireAt int64, keep bool) (added int, err error) {
	if h.big {
		return h.setBig(pairs, expireAt, keep)
	}
	var old []byte
	if h.found {
		old = h.item.Value()
	}
	if expireAt != 0 {
		return h.grow(old, pairs, expireAt)
	}
	p := &h.r.Worker.Pack
	p.Open(&shape.PackedHash, old, h.r.Now)
	for from := 0; from < len(pairs); from += 2 * maxFind {
		n, ok := setPacked(p, pairs[from:min(from+2*maxFind, len(pairs))])
		if !ok {
			return h.grow(old, pairs, 0)
		}
		added += n
	}
	return added, h.store(p)
}

// maxFind is how many fields are found in one pass over a packed hash.
const maxFind = 16

// setPacked sets up to maxFind fields. ok is false if there is no room for all.
func setPacked(p *shape.Pack, pairs [][]byte) (added int, ok bool) {
	var fields [maxFind][]byte
	var at [maxFind]int
	n, before := len(pairs)/2, p.Len()
	for i := range n {
		fields[i] = pairs[2*i]
	}
	p.Find(fields[:n], at[:n])
	for i := range n {
		for j := 0; j < i && at[i] < 0; j++ { // named before, in this command
			if at[j] >= before && string(fields[j]) == string(fields[i]) {
				at[i] = at[j]
			}
		}
		if at[i] >= 0 {
			ok = p.Replace(at[i], 1, pairs[2*i+1])
		} else {
			at[i] = p.Len()
			ok = p.Insert(at[i], 0, fields[i], pairs[2*i+1])
			added++
		}
		if !ok {
			return 0, false
		}
	}
	return added, true
}

// store stores the changed packed value.
func (h *hash) store(p *shape.Pack) error {
	if p.Len() == 0 {
		h.txn.Delete(h.r.Args[1])
		return nil
	}
	return h.txn.Set(h.r.Args[1], p.Bytes(), engine.TypeHash, h.expireAt())
}

// setBig is set of a hash with parts.
func (h *hash) setBig(pairs [][]byte, expireAt int64, keep bool) (added int, err error) {
	t, w := &h.table, &h.r.Worker.Work
	if len(pairs) == 2 && !keep {
		if isNew, ok := t.TrySet(pairs[0], pairs[1], expireAt); ok {
			t.NoteSet(w, pairs[0], pairs[1], expireAt)
			w.Note(t.V)
			noteDue(t.V, expireAt)
			return int(exec.BoolInt(isNew)), nil
		}
	}
	if err := t.Reserve(w, pairs, expireAt != 0 || keep && t.Expiring() > 0); err != nil {
		return 0, err
	}
	for i := 0; i < len(pairs); i += 2 {
		at := expireAt
		if keep {
			e, _ := t.Get(pairs[i])
			at = e.ExpireAt
			if at != 0 && at <= h.r.Now {
				at = 0
			}
		}
		added += h.mustSet(pairs[i], pairs[i+1], at)
		t.NoteSet(w, pairs[i], pairs[i+1], at)
	}
	w.Note(t.V)
	noteDue(t.V, expireAt)
	return added, nil
}

// mustSet sets a field of the table for which memory was reserved, and returns 1 if it is new.
func (h *hash) mustSet(field, value []byte, expireAt int64) (added int) {
	isNew, err := h.table.Set(field, value, expireAt)
	if err != nil {
		panic("BUG: no memory for what was reserved: " + err.Error())
	}
	return int(exec.BoolInt(isNew))
}

// grow makes the hash, whose packed value is a view of the engine or nil, one with parts, and sets
// the pairs.
func (h *hash) grow(packed []byte, pairs [][]byte, expireAt int64) (added int, err error) {
	r := h.r
	w := &r.Worker.Work
	var old []byte
	if packed != nil {
		old = append(r.Worker.Body[:0], packed...)
		defer r.Worker.KeepBody(old)
	}
	h.txn.BeginUnit()
	defer h.txn.EndUnit()
	_, err = shape.Rebuild(h.txn, r.Args[1], engine.TypeHash, ownSize, h.expireAt(), old, func(v engine.Parts) error {
		h.table = tableOf(v, r.Now)
		if old != nil {
			p := shape.ReadPacked(&shape.PackedHash, old)
			if err := h.table.Unpack(w, &p); err != nil {
				return err
			}
		}
		if err := h.table.Reserve(w, pairs, expireAt != 0); err != nil {
			return err
		}
		for i := 0; i < len(pairs); i += 2 {
			added += h.mustSet(pairs[i], pairs[i+1], expireAt)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	h.found, h.big = true, true
	h.table.NoteAll(w)
	noteDue(h.table.V, expireAt)
	return added, nil
}
