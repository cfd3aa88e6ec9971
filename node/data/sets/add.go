package sets

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sAdd: SADD key member...
func sAdd(r *exec.Request) { change(r, true) }

// sRem: SREM key member...
func sRem(r *exec.Request) { change(r, false) }

// change adds or removes the members of the command, and answers how many.
func change(r *exec.Request, add bool) {
	run, ok := r.LockElementRun(r.Args[2:], 1)
	if !ok {
		return
	}
	defer run.Release()
	s, ok := open(r, run.Txn, r.Args[1])
	if !ok {
		return
	}
	if add && !run.FitsOver(r.Args[2:]) {
		return
	}
	n, err, members := 0, error(nil), r.Args[2+run.First:2+run.End]
	if add {
		n, err = s.add(members)
	} else {
		n, err = s.remove(members)
	}
	if err != nil {
		r.ReplyValueError(err)
		return
	}
	sum := run.Sum + int64(n)
	if run.GoesOn(sum) {
		return
	}
	switch {
	case sum == 0:
	case add:
		r.Notify(keyevent.Set, "sadd", s.key)
	default:
		r.NotifyLeft(run.Txn, keyevent.Set, "srem", s.key)
	}
	r.ReplyInt(sum)
}

// sMove: SMOVE source destination member
func sMove(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	from, ok := open(r, t, r.Args[1])
	if !ok {
		return
	}
	if !from.found {
		r.ReplyInt(0)
		return
	}
	to, ok := open(r, t, r.Args[2])
	if !ok {
		return
	}
	member := r.Args[3:4]
	if is := from.has(member[0]); !is || bytes.Equal(r.Args[1], r.Args[2]) {
		r.ReplyBool(is)
		return
	}
	t.BeginUnit()
	defer t.EndUnit()
	// First what takes memory, so that the member is not lost without it.
	added, err := to.add(member)
	if err != nil {
		r.ReplyValueError(err)
		return
	}
	if from.item, from.found = t.Peek(r.Args[1]); from.found { // or it was evicted to make room
		from.view()
		if _, err := from.remove(member); err != nil {
			r.ReplyValueError(err)
			return
		}
		r.NotifyLeft(t, keyevent.Set, "srem", r.Args[1])
	}
	if added > 0 {
		r.Notify(keyevent.Set, "sadd", r.Args[2])
	}
	r.ReplyInt(1)
}
