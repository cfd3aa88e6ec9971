package lists

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// push: LPUSH, RPUSH, LPUSHX, RPUSHX key element...
func push(r *exec.Request, at end, mustExist bool) {
	run, ok := r.LockElementRun(r.Args[2:], 1)
	if !ok {
		return
	}
	defer run.Release()
	l, ok := open(r, run.Txn, r.Args[1])
	if !ok {
		return
	}
	if !l.found && mustExist {
		r.ReplyInt(0)
		return
	}
	if !run.Fits(l.bytes(), r.Args[2:]) {
		return
	}
	elements := r.Args[2+run.First : 2+run.End]
	length := l.len() + len(elements)
	if err := l.insert(l.position(at), elements, at == head); err != nil {
		r.ReplyValueError(err)
		return
	}
	if !run.GoesOn(0) {
		r.Notify(keyevent.List, at.pushed(), l.key)
		r.ReplyInt(int64(length))
	}
}

// pushed is the event of a push at an end.
func (at end) pushed() string {
	if at == head {
		return "lpush"
	}
	return "rpush"
}

// popped is the event of a pop from an end.
func (at end) popped() string {
	if at == head {
		return "lpop"
	}
	return "rpop"
}
