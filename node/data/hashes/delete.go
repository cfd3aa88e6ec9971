package hashes

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hDel: HDEL key field...
func hDel(r *exec.Request) {
	run, ok := r.LockElementRun(r.Args[2:], 1)
	if !ok {
		return
	}
	defer run.Release()
	h, ok := open(r, run.Txn)
	if !ok {
		return
	}
	deleted, err := h.delete(r.Args[2+run.First : 2+run.End])
	if err != nil {
		r.ReplyValueError(err)
		return
	}
	sum := run.Sum + int64(deleted)
	if run.GoesOn(sum) {
		return
	}
	if sum > 0 {
		r.NotifyLeft(run.Txn, keyevent.Hash, "hdel", r.Args[1])
	}
	r.ReplyInt(sum)
}

// hGetDel: HGETDEL key FIELDS numfields field...
func hGetDel(r *exec.Request) {
	fields, problem := fieldsAt(r.Args, 2, errNumFields)
	if problem != "" {
		refuse(r, problem)
		return
	}
	getEach(r, fields, true, "hdel", func(h hash, fields [][]byte) (changed bool, err error) {
		deleted, err := h.delete(fields)
		return deleted > 0, err
	})
}

// delete deletes fields, and the key with the last of them.
func (h *hash) delete(fields [][]byte) (deleted int, err error) {
	switch {
	case !h.found:
		return 0, nil
	case h.big:
		return h.deleteBig(fields), nil
	}
	p := &h.r.Worker.Pack
	p.Open(&shape.PackedHash, h.item.Value(), h.r.Now)
	for _, field := range fields {
		keys, at := [1][]byte{field}, [1]int{}
		if p.Find(keys[:], at[:]); at[0] >= 0 {
			p.Delete(at[0])
			deleted++
		}
	}
	if deleted == 0 {
		return 0, nil
	}
	return deleted, h.store(p)
}

func (h *hash) deleteBig(fields [][]byte) (deleted int) {
	t, w := &h.table, &h.r.Worker.Work
	before := t.Len()
	for _, field := range fields {
		if t.Delete(field) {
			deleted++
		}
		t.NoteDelete(w, field)
	}
	if t.Len() == before {
		w.Forget()
		return 0
	}
	w.Note(t.V)
	h.shrink()
	return deleted
}

// shrink deletes a hash that has become empty, and packs one that has become small.
func (h *hash) shrink() {
	t := &h.table
	switch {
	case t.Len() == 0:
		t.V.SetDue(0)
		h.txn.Delete(h.r.Args[1])
	case t.Expiring() == 0 && t.Small(&shape.PackedHash):
		p := &h.r.Worker.Pack
		p.PackTable(&h.r.Worker.Work, &shape.PackedHash, t)
		t.V.SetDue(0)
		_ = h.txn.Set(h.r.Args[1], p.Bytes(), engine.TypeHash, h.expireAt()) // without memory it stays big
	}
}
