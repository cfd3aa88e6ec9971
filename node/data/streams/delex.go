package streams

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// xDelEx: XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id...
func xDelEx(r *exec.Request) { deleteNamed(r, 2, false) }

// xAckDel: XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id...
func xAckDel(r *exec.Request) { deleteNamed(r, 3, true) }

// deleteNamed deletes the entries that the options from an argument on name, and answers an outcome for
// each. ofGroup: only entries that are pending in the group of argument 2, which acknowledges them.
func deleteNamed(r *exec.Request, options int, ofGroup bool) {
	a, problem := parseIDs(r.Args[options:])
	locks, t, ok := lockRun(r)
	defer locks.Release()
	if !ok {
		return
	}
	s, ok := openFirst(r, t, &locks, ofGroup)
	switch {
	case !ok:
		return
	case problem != "":
		r.Fail(problem)
		return
	}
	n := named{removal: removal{refs: a.refs}}
	n.take(&locks)
	var g group
	found := s.found
	if found && ofGroup {
		g, found = s.groupNamed(r.Args[2])
	}
	if found && !n.check(r, &locks, a.ids) || !r.Room((changedAtOnce+1)*exec.LineRoom) {
		return
	}
	begun := len(r.Out)
	if !n.headed {
		r.Out = resp.AppendArray(r.Out, len(a.ids))
		n.headed = true
	}
	of := &g
	if !ofGroup {
		of = nil
	}
	done := false
	if !found {
		done = n.each(a.ids, func(ID) bool {
			r.ReplyInt(int64(noEntry))
			return true
		})
	} else if done = n.delete(&s, of, a.ids); !s.closeOrFail(begun, nil) {
		return
	}
	if !done {
		n.goOn(&locks)
		return
	}
	if n.sum > 0 {
		r.Notify(keyevent.Stream, "xdel", r.Args[1])
	}
	locks.Whole()
}

// delete deletes the entries of one run, answers their outcomes, and reports whether that was all.
// g is the group of XACKDEL.
func (n *named) delete(s *stream, g *group, ids [][]byte) (done bool) {
	if n.batch == nil {
		next := make([]ID, 0, changedAtOnce)
		for _, arg := range ids[n.done:min(n.done+changedAtOnce, len(ids))] {
			id, _ := parseID(arg, 0)
			next = append(next, id)
		}
		n.begin(next)
	}
	steps := refSteps
	whole := n.advance(s, g, &steps, func(o outcome, deleted bool) bool {
		if deleted {
			n.sum++
		}
		s.r.ReplyInt(int64(o))
		return true
	})
	if whole {
		n.done += len(n.ids)
		n.batch = nil
	}
	return n.done == len(ids)
}
