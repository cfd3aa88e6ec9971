package streams

import (
	"math"
	"slices"

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
	if c.batch == nil {
		ids := c.nextIDs(s)
		if len(ids) == 0 {
			return true
		}
		c.begin(ids)
	}
	steps := refSteps
	whole := c.advance(s, nil, &steps, func(_ outcome, deleted bool) bool {
		done = deleted && c.count(1) || !c.byID && s.len() <= c.maxLen
		return !done
	})
	if whole && !done {
		var more bool
		c.at, more = c.ids[len(c.ids)-1].next()
		c.batch, done = nil, !more
	}
	return done
}

// nextIDs returns the next entries that may be removed. What groups refer to stays with ACKED, so
// there may be others in their place; with DELREF there are none.
func (c *cut) nextIDs(s *stream) []ID {
	n := changedAtOnce
	if c.refs == delRef && !c.byID {
		n = min(n, s.len()-c.maxLen)
	}
	if c.refs == delRef && c.limit > 0 {
		n = min(n, c.limit)
	}
	ids := s.idsFrom(c.at, make([]ID, n))
	if c.byID {
		end := slices.IndexFunc(ids, func(id ID) bool { return !id.less(c.minID) })
		if end >= 0 {
			ids = ids[:end]
		}
	}
	return ids
}
