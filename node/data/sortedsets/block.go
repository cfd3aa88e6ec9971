package sortedsets

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// bzPop: BZPOPMIN, BZPOPMAX key... timeout
func bzPop(r *exec.Request, last bool) {
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
		s, ok := open(r, t, key)
		if !ok {
			return
		}
		if s.found && !r.Leaves(t, engine.TypeZSet, nil, key) {
			if r.Room(len(key) + 2*exec.LineRoom) {
				r.Out = resp.AppendArray(r.Out, 3)
				r.ReplyBulk(key)
				s.popRun(&locks, popped{left: 1}, last, false)
			}
			return
		}
	}
	r.AwaitKeys(t, engine.TypeZSet, limit)
}

// bzmPop: BZMPOP timeout numkeys key... MIN|MAX [COUNT count]
func bzmPop(r *exec.Request) {
	var limit time.Duration
	limited := func() (ok bool) {
		limit, ok = r.TimeoutArg(1)
		return ok
	}
	zmPopOr(r, r.Args[1:], limited, func(t engine.Txn) { r.AwaitKeys(t, engine.TypeZSet, limit) })
}
