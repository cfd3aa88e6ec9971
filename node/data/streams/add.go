package streams

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// adding is an XADD that has added its entry, and goes on noting and trimming.
type adding struct {
	id     ID
	noting noting
	cut    cut
}

// xAdd: XADD key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [MAXLEN | MINID [= | ~] threshold [LIMIT count]]
// * | id field value...
func xAdd(r *exec.Request) {
	a, problem := parseTrim(r.Args, true)
	if problem != "" {
		r.Fail(problem)
		return
	}
	if n := len(r.Args) - a.fields; n < 2 || n%2 != 0 {
		r.FailArity()
		return
	}
	if a.idGiven && a.seqGiven && a.id.isZero() {
		r.Fail(ErrIDZero)
		return
	}
	locks, t, ok := lockRun(r)
	defer locks.Release()
	if !ok {
		return
	}
	s, ok := open(r, t, r.Args[1])
	if !ok {
		return
	}
	var rest adding
	if before, begun := locks.State.(*adding); begun {
		rest = *before
	} else if rest, ok = add(&s, &a, &locks); !ok {
		if x, begun := locks.State.(*staging); begun && !s.goesOn {
			x.End()
		}
		return
	}
	done := rest.note(&s) && rest.cut.run(&s)
	if !s.closeOrFail(len(r.Out), nil) {
		return
	}
	if !done {
		state := rest
		goOn(&locks, &state)
		return
	}
	r.Notify(keyevent.Stream, "xadd", s.key)
	if rest.cut.removed > 0 {
		r.Notify(keyevent.Stream, "xtrim", s.key)
	}
	replyID(r, rest.id)
}

// add adds the entry. If ok is false, the command is answered, or goes on in another run.
func add(s *stream, a *trimArgs, locks *exec.KeyLocks) (rest adding, ok bool) {
	r := s.r
	if !s.found && a.noMkStream {
		r.ReplyNull()
		return rest, false
	}
	var last ID
	if s.found {
		last = s.meta().last
	}
	id, problem := a.nextID(last, r.Now)
	if problem != "" {
		r.Fail(problem)
		return rest, false
	}
	if !r.UseElements(s.txn) {
		return rest, false
	}
	fields := r.Args[a.fields:]
	if isStaged(fields, mostOwn(r)) {
		if ok := s.stage(locks, fields); !ok {
			return rest, false
		}
	}
	if isLong(fields) && r.Hold == nil && !r.InTransaction { // what all runs note is to be one unit
		if s.staged != nil {
			locks.State = s.staged
		}
		s.goesOn = true
		locks.Hold()
		locks.Stop(1, 0)
		return rest, false
	}
	if s.staged != nil {
		defer s.staged.End()
	}
	if err := s.add(id, fields); err != nil {
		s.closeOrFail(len(r.Out), err)
		return rest, false
	}
	return adding{id, s.noting, a.cut()}, true
}

// note notes some of a long entry, and reports whether that was the rest. They are copied for each receiver.
func (x *adding) note(s *stream) (whole bool) {
	if x.noting.all == 0 {
		return true
	}
	s.change()
	s.changed, s.noting = true, x.noting
	s.noteMore(notedAtOnce)
	x.noting, s.noting = s.noting, noting{}
	return x.noting.all == 0
}
