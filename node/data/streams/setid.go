package streams

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// setIDArgs are the arguments of XSETID.
type setIDArgs struct {
	last       ID
	maxDeleted ID    // 0-0: it stays
	added      int64 // -1: it stays
}

// xSetID: XSETID key last-id [ENTRIESADDED entries] [MAXDELETEDID id]
func xSetID(r *exec.Request) {
	a, problem := parseSetID(r.Args)
	if problem != "" {
		r.Fail(problem)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := open(r, t, r.Args[1])
	switch {
	case !ok:
		return
	case !s.found:
		r.Fail(ErrNoKey)
		return
	}
	if problem := a.check(&s); problem != "" {
		r.Fail(problem)
		return
	}
	i := s.info()
	i.last = a.last
	if a.added >= 0 {
		i.added = uint64(a.added)
	}
	if !a.maxDeleted.isZero() {
		i.maxDeleted = a.maxDeleted
	}
	if !s.closeOrFail(len(r.Out), s.setInfo(i)) {
		return
	}
	r.Notify(keyevent.Stream, "xsetid", s.key)
	r.ReplyOK()
}

func parseSetID(args [][]byte) (a setIDArgs, problem string) {
	a.added = -1
	var ok bool
	if a.last, ok = parseID(args[2], 0); !ok {
		return a, ErrID
	}
	for options := args[3:]; len(options) > 0; options = options[2:] {
		switch {
		case len(options) < 2:
			return a, exec.ErrSyntax
		case exec.Is(options[0], "ENTRIESADDED"):
			if a.added, problem = parseCount(options[1]); problem == "" && a.added < 0 {
				problem = ErrAddedNegative
			}
		case exec.Is(options[0], "MAXDELETEDID"):
			if a.maxDeleted, ok = parseID(options[1], 0); !ok {
				problem = ErrID
			} else if a.last.less(a.maxDeleted) {
				problem = ErrSetBelowGiven
			}
		default:
			problem = exec.ErrSyntax
		}
		if problem != "" {
			return a, problem
		}
	}
	return a, ""
}

// check returns why the stream cannot have these figures.
func (a *setIDArgs) check(s *stream) (problem string) {
	if a.last.less(s.info().maxDeleted) {
		return ErrSetBelowMax
	}
	s.eachBack(maxID, func(id ID, _ entry) bool {
		if a.last.less(id) {
			problem = ErrSetBelowLatest
		}
		return false
	})
	if problem == "" && a.added >= 0 && int64(s.len()) > a.added {
		problem = ErrAddedTooSmall
	}
	return problem
}
