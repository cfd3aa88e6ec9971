package streams

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// claiming is an XCLAIM or XAUTOCLAIM of which some runs are done.
type claiming struct {
	minIdle   int64 // milliseconds
	delivered int64 // the time of delivery that pending entries get
	count     int64 // the number of deliveries that they get, or oneMore
	force     bool  // also what is not pending
	justID    bool
	now       int64

	claimed int  // so many are answered
	id      ID   // of the entry of which some strings are answered
	at      spot // the next one of them; the zero spot: there is no such entry
	steps   int  // that are left of this run
	err     error
}

// oneMore is the number of deliveries that XCLAIM without RETRYCOUNT gives.
const oneMore = -1

// A pending entry that is passed is one step of a run, lookCost one whose entry is looked up, and claimCost more
// one that is claimed.
const lookCost, claimCost = 3, 5

// claimer is one run of a claiming.
type claimer struct {
	*claiming
	s     *stream
	g     *group
	k     consumer // who claims
	slice slice
	begun int // where the reply of this run begins
}

// begin begins a run: it finds the consumer, or makes it. If ok is false, the command is answered.
func (c *claiming) begin(s *stream, g *group, name []byte) (run claimer, ok bool) {
	r := s.r
	run = claimer{claiming: c, s: s, g: g, begun: len(r.Out), slice: newSlice(r)}
	c.steps, c.now = claimSteps, r.Now
	var found bool
	if run.k, found = s.consumerNamed(g, name); found {
		return run, true
	}
	var err error
	if run.k, err = s.createConsumer(g, name, r.Now); err != nil {
		s.closeOrFail(run.begun, err)
		return run, false
	}
	r.Notify(keyevent.Stream, "xgroup-createconsumer", s.key)
	return run, true
}

// goesOn answers the strings that are left of the last entry, and reports whether the run has room for more.
func (run *claimer) goesOn() bool {
	if run.at != (spot{}) {
		e, found := run.s.entry(run.id)
		if !found {
			run.err = errGone
		} else if !run.slice.entry(run.id, &e, &run.at) {
			return false
		}
	}
	return run.err == nil && run.steps > 0 && !run.slice.full()
}

// claim gives a pending entry to the consumer, if its idle time allows that, and answers it. was: p is pending;
// otherwise only its ID counts. gone reports that the entry does not exist any more; then nothing is pending.
func (run *claimer) claim(p pending, was bool) (claimed, gone bool) {
	run.steps -= lookCost
	e, found := run.s.entry(p.id)
	switch {
	case !found && was:
		run.steps -= claimCost
		run.s.ack(run.g, p.id)
		return false, true
	case !found, !was && !run.force, was && !run.isIdle(p):
		return false, false
	}
	run.steps -= claimCost
	if run.justID {
		run.slice.id(p.id)
	} else {
		run.id = p.id
		run.slice.entry(p.id, &e, &run.at)
	}
	if !was {
		p.count = 1
	}
	switch {
	case run.count != oneMore:
		p.count = uint64(run.count)
	case !run.justID:
		p.count++
	}
	p.delivered = run.delivered
	if run.err = run.s.setPending(run.g, &run.k, p); run.err != nil {
		return false, false
	}
	run.k.active = run.now
	run.claimed++
	return true, false
}

// isIdle reports whether a pending entry has been idle for long enough.
func (c *claiming) isIdle(p pending) bool { return c.minIdle <= 0 || c.now-p.delivered >= c.minIdle }

// end ends a run. If ok is false, an error is answered.
func (run *claimer) end() (ok bool) {
	r := run.s.r
	if run.err == nil {
		run.k.seen = run.now
		run.err = run.s.setConsumer(run.g, &run.k)
	}
	if ok = run.s.closeOrFail(run.begun, run.err); !ok {
		run.slice.Drop()
	}
	r.Worker.KeepBody(run.slice.Bytes)
	return ok
}

// openClaimed finds the group of XCLAIM or XAUTOCLAIM. If ok is false, the command is answered.
func openClaimed(r *exec.Request, t engine.Txn, locks *exec.KeyLocks) (s stream, g group, ok bool) {
	if s, ok = openFirst(r, t, locks, true); !ok {
		return s, g, false
	}
	if ok = s.found; ok {
		g, ok = s.groupNamed(r.Args[2])
	}
	if !ok {
		r.Fail(noGroup(r.Args[1], r.Args[2]))
	}
	return s, g, ok
}

// xClaim: XCLAIM key group consumer min-idle-time id... [IDLE ms] [TIME unix-ms] [RETRYCOUNT count] [FORCE]
// [JUSTID] [LASTID id]
func xClaim(r *exec.Request) {
	locks, t, ok := lockRun(r)
	defer locks.Release()
	if !ok {
		return
	}
	s, g, ok := openClaimed(r, t, &locks)
	if !ok {
		return
	}
	var c claimNamed
	if before, begun := locks.State.(*claimNamed); begun {
		c = *before
	}
	if !c.parsed {
		if problem := c.parse(r.Args, r.Now); problem != "" {
			r.Fail(problem)
			return
		}
	}
	if !c.parsed {
		state := c
		goOn(&locks, &state)
		return
	}
	run, ok := c.begin(&s, &g, r.Args[3])
	if !ok {
		return
	}
	if g.last.less(c.last) {
		g.last = c.last
		run.err = s.setGroup(&g)
	}
	for run.goesOn() && c.done < c.ids {
		id, _ := parseID(r.Args[firstClaimed+c.done], 0)
		p, was := s.pending(&g, id)
		p.id = id
		run.claim(p, was)
		c.done++
	}
	if !run.end() {
		return
	}
	if c.done == c.ids && c.at == (spot{}) {
		locks.WholeText(resp.AppendArray(nil, c.claimed), &run.slice.Text)
		return
	}
	if r.ReplyText(&run.slice.Text) {
		state := c
		goOn(&locks, &state)
	}
}
