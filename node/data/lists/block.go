package lists

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// bPop: BLPOP, BRPOP key... timeout
func bPop(r *exec.Request, from end) {
	limit, ok := r.TimeoutArg(len(r.Args) - 1)
	if !ok {
		return
	}
	locks := r.LockKeys()
	defer locks.Release()
	var t engine.Txn
	for i := range r.Keys {
		var key []byte
		if t, key, ok = locks.At(i); !ok {
			locks.Stop(i, 0)
			return
		}
		l, ok := open(r, t, key)
		if !ok {
			return
		}
		if l.found && !r.Leaves(t, engine.TypeList, nil, key) {
			l.popKeyed(from)
			return
		}
	}
	r.AwaitKeys(t, engine.TypeList, limit)
}

// popKeyed pops an element and answers it behind its key.
func (l *list) popKeyed(from end) {
	r, start := l.r, len(l.r.Out)
	if !r.Room(len(l.key) + 2*exec.LineRoom) {
		return
	}
	r.Out = resp.AppendArray(r.Out, 2)
	r.ReplyBulk(l.key)
	position := l.first(from, 1)
	if !r.ReplyElement(l.at(position)) {
		return
	}
	r.Take(l.txn, l.key, start)
	if err := l.remove(position, 1); err != nil {
		r.Undo(start)
		r.ReplyValueError(err)
		return
	}
	r.NotifyLeft(l.txn, keyevent.List, from.popped(), l.key)
}

// blmPop: BLMPOP timeout numkeys key... LEFT|RIGHT [COUNT count]
func blmPop(r *exec.Request) {
	var limit time.Duration
	limited := func() (ok bool) {
		limit, ok = r.TimeoutArg(1)
		return ok
	}
	lmPopOr(r, 2, limited, func(t engine.Txn) { r.AwaitKeys(t, engine.TypeList, limit) })
}

// blMove: BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout
func blMove(r *exec.Request) {
	from, ok := endArg(r, 3)
	if !ok {
		return
	}
	to, ok := endArg(r, 4)
	if !ok {
		return
	}
	bMove(r, from, to)
}

// bMove: BLMOVE, BRPOPLPUSH source destination ... timeout
func bMove(r *exec.Request, from, to end) {
	limit, ok := r.TimeoutArg(len(r.Args) - 1)
	if !ok {
		return
	}
	moveOr(r, from, to, func(t engine.Txn) {
		if r.Executing() {
			r.ReplyNull()
			return
		}
		r.Await(t, exec.Await{Wish: engine.Wish{Type: engine.TypeList, Keys: r.Args[1:2]}, Limit: limit})
	})
}
