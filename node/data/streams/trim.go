package streams

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// xTrim: XTRIM key MAXLEN | MINID [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]
func xTrim(r *exec.Request) {
	a, problem := parseTrim(r.Args, false)
	if problem != "" {
		r.Fail(problem)
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
	c := a.cut()
	if before, begun := locks.State.(*cut); begun {
		c = *before
	}
	done := true
	if s.found {
		done = c.run(&s)
		if !s.closeOrFail(len(r.Out), nil) {
			return
		}
	}
	if !done {
		state := c
		goOn(&locks, &state)
		return
	}
	if c.removed > 0 {
		r.Notify(keyevent.Stream, "xtrim", s.key)
	}
	r.ReplyInt(c.removed)
}

// cut is a trim, of which some is done.
type cut struct {
	trimming
	none    bool // there is nothing to do
	removal      // of entries one by one, unless they are removed without regard to groups
	at      ID   // up to which entries were looked at
	removed int64
}

// cut is the trim that the options ask for.
func (a *trimArgs) cut() cut {
	return cut{
		none:    a.strategy == noTrim,
		removal: removal{refs: a.refs},
		trimming: trimming{
			byID: a.strategy == byID, minID: a.minID, maxLen: int(min(a.maxLen, math.MaxInt)),
			approx: a.approx, limit: int(min(a.limit, math.MaxInt)),
		},
	}
}

// run removes the entries of one run, and reports whether that was all.
func (c *cut) run(s *stream) (done bool) {
	switch {
	case c.none || !c.byID && s.len() <= c.maxLen:
		return true
	case c.refs != keepRef:
		return c.runOneByOne(s)
	}
	removed, done := s.trim(c.trimming, trimSteps)
	return c.count(removed) || done
}

// count counts entries that were removed. It reports whether that were as many as LIMIT allows.
func (c *cut) count(n int) (enough bool) {
	c.removed += int64(n)
	if c.limit == 0 || n == 0 {
		return false
	}
	c.limit = max(c.limit-n, 0)
	return c.limit == 0
}

// runOneByOne is run for entries to which groups may refer. A trim leaves no trace of the entries: it is not
// they that are the greatest ones deleted.
func (c *cut) runOneByOne(s *stream) (done bool) {
	before := s.meta().maxDeleted
	done = c.removeSome(s)
	if m := s.meta(); m.maxDeleted != before {
		m.maxDeleted = before
		s.setMeta(m)
	}
	return done
}

// removeSome removes entries of one run.
func (c *cut) removeSome(s *stream) (done bool) {
	var buffer [changedAtOnce]ID
	steps := groupsAtOnce
	ids := s.idsFrom(c.at, buffer[:])
	for _, id := range ids {
		if c.byID && !id.less(c.minID) || !c.byID && s.len() <= c.maxLen {
			return true
		}
		c.at = id
		o, whole := c.remove(s, id, &steps)
		if !whole {
			return false
		}
		if o == entryDeleted && c.count(1) {
			return true
		}
		if c.at, whole = id.next(); !whole {
			return true
		}
	}
	return len(ids) < len(buffer)
}
