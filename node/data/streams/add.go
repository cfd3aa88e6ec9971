package streams

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// adding is an XADD that has added its entry, and goes on trimming.
type adding struct {
	id  ID
	cut cut
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
		return
	}
	done := rest.cut.run(&s)
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
		defer s.staged.End()
	}
	if err := s.add(id, fields); err != nil {
		s.closeOrFail(len(r.Out), err)
		return rest, false
	}
	return adding{id, a.cut()}, true
}
