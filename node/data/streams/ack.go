package streams

import "github.com/dunlin-cache/dunlin/node/exec"

// xAck: XACK key group id...
func xAck(r *exec.Request) {
	locks, t, ok := lockRun(r)
	defer locks.Release()
	if !ok {
		return
	}
	s, ok := openFirst(r, t, &locks, true)
	if !ok {
		return
	}
	var n named
	n.take(&locks)
	g, found := s.groupNamed(r.Args[2])
	if !found { // nobody looks at the IDs
		r.ReplyInt(n.sum)
		return
	}
	ids := r.Args[3:]
	if !n.check(r, &locks, ids) {
		return
	}
	done := n.each(ids, func(id ID) bool {
		if s.ack(&g, id) {
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
	r.ReplyInt(n.sum)
}
