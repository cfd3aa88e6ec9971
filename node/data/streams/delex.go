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
	steps := groupsAtOnce
	done := n.each(a.ids, func(id ID) bool {
		o, whole := noEntry, true
		if found {
			o, whole = n.delete(&s, id, &steps, ofGroup, &g)
		}
		if whole {
			r.ReplyInt(int64(o))
		}
		return whole
	})
	if found && !s.closeOrFail(begun, nil) {
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

// delete deletes an entry for XDELEX or, ofGroup, XACKDEL. whole is false if it goes on in another run.
func (n *named) delete(s *stream, id ID, steps *int, ofGroup bool, g *group) (o outcome, whole bool) {
	if ofGroup && !n.acked {
		if !s.ack(g, id) {
			return noEntry, true
		}
		n.acked = true
	}
	if o, whole = n.remove(s, id, steps); !whole {
		return 0, false
	}
	n.acked = false
	switch {
	case o == entryDeleted:
		n.sum++
	case ofGroup && o == noEntry: // the entry was deleted before
		o = entryDeleted
	}
	return o, true
}
