package streams

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// xDel: XDEL key id...
func xDel(r *exec.Request) {
	locks, t, ok := lockRun(r)
	defer locks.Release()
	if !ok {
		return
	}
	s, ok := open(r, t, r.Args[1])
	if !ok {
		return
	}
	var n named
	n.take(&locks)
	if !s.found { // nobody looks at the IDs
		r.ReplyInt(n.sum)
		return
	}
	ids := r.Args[2:]
	if !n.check(r, &locks, ids) {
		return
	}
	done := n.each(ids, func(id ID) bool {
		if s.delete(id) {
			n.sum++
		}
		return true
	})
	if !s.closeOrFail(len(r.Out), nil) {
		return
	}
	if !done {
		n.goOn(&locks)
		return
	}
	if n.sum > 0 {
		r.Notify(keyevent.Stream, "xdel", s.key)
	}
	r.ReplyInt(n.sum)
}
