package streams

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// openGroup opens the group that a subcommand of XGROUP changes. If ok is false, the command is answered.
func openGroup(r *exec.Request, t engine.Txn) (s stream, g group, ok bool) {
	if s, ok = open(r, t, r.Args[2]); !ok {
		return s, g, false
	}
	if !s.found {
		r.Fail(ErrGroupNeedsKey)
		return s, g, false
	}
	if g, ok = s.groupNamed(r.Args[3]); !ok {
		r.Fail(noGroupOfKey(r.Args[2], r.Args[3]))
	}
	return s, g, ok
}

// xGroupDestroy: XGROUP DESTROY key group
func xGroupDestroy(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := open(r, t, r.Args[2])
	switch {
	case !ok:
		return
	case !s.found:
		r.Fail(ErrGroupNeedsKey)
		return
	}
	g, found := s.groupNamed(r.Args[3])
	if !found {
		r.ReplyInt(0)
		return
	}
	s.destroyGroup(&g)
	if !s.closeOrFail(len(r.Out), nil) {
		return
	}
	r.Notify(keyevent.Stream, "xgroup-destroy", s.key)
	r.ReplyInt(1)
}

// xGroupCreateConsumer: XGROUP CREATECONSUMER key group consumer
func xGroupCreateConsumer(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, g, ok := openGroup(r, t)
	if !ok {
		return
	}
	if _, found := s.consumer(&g, r.Args[4]); found {
		r.ReplyInt(0)
		return
	}
	_, err := s.createConsumer(&g, r.Args[4], r.Now)
	if !s.closeOrFail(len(r.Out), err) {
		return
	}
	r.Notify(keyevent.Stream, "xgroup-createconsumer", s.key)
	r.ReplyInt(1)
}

// xGroupDelConsumer: XGROUP DELCONSUMER key group consumer
func xGroupDelConsumer(r *exec.Request) {
	locks, t, ok := lockRun(r)
	defer locks.Release()
	if !ok {
		return
	}
	s, g, ok := openGroup(r, t)
	if !ok {
		return
	}
	var n named
	n.take(&locks)
	c, found := s.consumerNamed(&g, r.Args[4])
	if found {
		removed, done := s.deleteConsumer(&g, &c, changedAtOnce)
		n.sum += int64(removed)
		if !s.closeOrFail(len(r.Out), nil) {
			return
		}
		if !done {
			n.goOn(&locks)
			return
		}
		r.Notify(keyevent.Stream, "xgroup-delconsumer", s.key)
	}
	r.ReplyInt(n.sum)
}
