package hashes

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hSet: HSET key field value...
func hSet(r *exec.Request) {
	if len(r.Args)%2 != 0 {
		r.FailArity()
		return
	}
	run, ok := r.LockElementRun(r.Args[2:], 2)
	if !ok {
		return
	}
	defer run.Release()
	h, ok := open(r, run.Txn)
	if !ok {
		return
	}
	added, err := h.set(r.Args[2+2*run.First : 2+2*run.End])
	if err != nil {
		r.ReplyValueError(err)
		return
	}
	if sum := run.Sum + int64(added); !run.GoesOn(sum) {
		r.ReplyInt(sum)
	}
}

// hash is the value of the command's key, while a handler changes it.
type hash struct {
	r     *exec.Request
	txn   engine.Txn
	item  engine.Item
	found bool
	big   bool // it has parts: table
	table shape.Table
}

// open looks up the hash that a command changes. If the key holds another type, open answers the
// error and ok is false.
func open(r *exec.Request, t engine.Txn) (h hash, ok bool) {
	h = hash{r: r, txn: t}
	if h.item, h.found, ok = r.FindOf(t, r.Args[1], engine.TypeHash); !ok || !h.found {
		return h, ok
	}
	var v engine.Parts
	if v, h.big = t.Parts(h.item); h.big {
		h.table = tableOf(v, r.Now)
	}
	return h, true
}

func (h *hash) expireAt() int64 {
	if h.found {
		return h.item.ExpireAt()
	}
	return 0
}

// set sets fields to values: field, value, field, value … They never expire. After an error nothing
// has changed.
func (h *hash) set(pairs [][]byte) (added int, err error) {
	if h.big {
		return h.setBig(pairs)
	}
	var old []byte
	if h.found {
		old = h.item.Value()
	}
	p := &h.r.Worker.Pack
	p.Open(&shape.PackedHash, old, h.r.Now)
	for i := 0; i < len(pairs); i += 2 {
		isNew, ok := setPacked(p, pairs[i], pairs[i+1])
		if !ok {
			return h.grow(old, pairs)
		}
		if isNew {
			added++
		}
	}
	return added, h.store(p)
}

func setPacked(p *shape.Pack, field, value []byte) (added, ok bool) {
	keys, at := [1][]byte{field}, [1]int{}
	if p.Find(keys[:], at[:]); at[0] < 0 {
		return true, p.Insert(p.Len(), 0, field, value)
	}
	return false, p.Replace(at[0], 1, value)
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
func (h *hash) setBig(pairs [][]byte) (added int, err error) {
	t, w := &h.table, &h.r.Worker.Work
	if added, err = h.setTable(pairs); err != nil {
		return 0, err
	}
	for i := 0; i < len(pairs); i += 2 {
		t.NoteSet(w, pairs[i], pairs[i+1], 0)
	}
	w.Note(t.V)
	return added, nil
}

// setTable sets fields of the table, and leaves it to the caller to note that.
func (h *hash) setTable(pairs [][]byte) (added int, err error) {
	t, w := &h.table, &h.r.Worker.Work
	if err := t.Reserve(w, pairs, false); err != nil {
		return 0, err
	}
	for i := 0; i < len(pairs); i += 2 {
		isNew, err := t.Set(pairs[i], pairs[i+1], 0)
		if err != nil {
			panic("BUG: no memory for what was reserved: " + err.Error())
		}
		if isNew {
			added++
		}
	}
	return added, nil
}

// grow makes the hash, whose packed value is a view of the engine, one with parts, and sets the
// pairs.
func (h *hash) grow(packed []byte, pairs [][]byte) (added int, err error) {
	r := h.r
	w := &r.Worker.Work
	old := append(r.Worker.Body[:0], packed...)
	defer r.Worker.KeepBody(old)
	if packed == nil {
		old = nil
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
		added, err = h.setTable(pairs)
		return err
	})
	if err == nil {
		h.table.NoteAll(w)
	}
	return added, err
}
