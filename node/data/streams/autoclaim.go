package streams

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sweeping is an XAUTOCLAIM.
type sweeping struct {
	claiming
	from     ID  // of the pending entry where it goes on
	left     int // of COUNT
	attempts int // pending entries that it still looks at
	ended    bool
	gone     []ID // of entries that do not exist any more
}

const (
	// defaultClaims is how many entries XAUTOCLAIM claims without COUNT, and maxClaims the most that COUNT may be.
	defaultClaims = 100
	maxClaims     = math.MaxInt64 / 16
	// attemptsEach is how many times as many it looks at.
	attemptsEach = 10
	// maxGone is how many entries that are gone it answers: then it ends early, with a cursor.
	maxGone = 1024
)

// xAutoClaim: XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]
func xAutoClaim(r *exec.Request) {
	c, problem := parseAutoClaim(r.Args)
	if problem != "" {
		r.Fail(problem)
		return
	}
	locks, t, ok := lockRun(r)
	defer locks.Release()
	if !ok {
		return
	}
	s, g, ok := openClaimed(r, t, &locks)
	if !ok {
		return
	}
	if before, begun := locks.State.(*sweeping); begun {
		c = *before
	}
	run, ok := c.begin(&s, &g, r.Args[3])
	if !ok {
		return
	}
	c.delivered = r.Now
	whole := run.goesOn() && c.sweep(&run)
	if !run.end() {
		return
	}
	if !whole || c.at != (spot{}) {
		if r.ReplyText(&run.slice.Text) {
			state := c
			goOn(&locks, &state)
		}
		return
	}
	head := appendBulkID(resp.AppendArray(nil, 3), c.cursor(&s, &g))
	head = resp.AppendArray(head, c.claimed)
	if !locks.WholeText(head, &run.slice.Text) || !r.Room((len(c.gone)+1)*exec.LineRoom) {
		return
	}
	r.Out = resp.AppendArray(r.Out, len(c.gone))
	for _, id := range c.gone {
		r.Out = appendBulkID(r.Out, id)
	}
}

func parseAutoClaim(args [][]byte) (c sweeping, problem string) {
	c.count, c.left = oneMore, defaultClaims
	if c.minIdle, problem = intOption(args[4], ErrAutoClaimIdle); problem != "" {
		return c, problem
	}
	if c.from, problem = parseStart(args[5]); problem != "" {
		return c, problem
	}
	for options := args[6:]; len(options) > 0; options = options[1:] {
		switch {
		case exec.Is(options[0], "JUSTID"):
			c.justID = true
		case exec.Is(options[0], "COUNT") && len(options) > 1:
			n, ok := resp.ParseInt(options[1])
			if !ok || n < 1 || n > maxClaims {
				return c, ErrAutoClaimCount
			}
			c.left = int(n)
			options = options[1:]
		default:
			return c, exec.ErrSyntax
		}
	}
	c.attempts = c.left * attemptsEach
	return c, ""
}

// sweep claims pending entries of one run, and reports whether that was all.
func (c *sweeping) sweep(run *claimer) (whole bool) {
	var buffer [mostChanged]pending
	for !c.isOver() { // it is, if only strings of its last entry were left
		all := run.s.pendingFrom(run.g, c.from, buffer[:min(c.attempts, changedAtOnce)])
		if len(all) == 0 {
			c.ended = true
			return true
		}
		there := run.s.present(all)
		for i, p := range all {
			if !run.goesOn() {
				return false
			}
			if there&(1<<i) != 0 && !run.isIdle(p) {
				run.steps--
			} else {
				c.try(run, p)
			}
			c.attempts--
			next, more := p.id.next()
			if c.from, c.ended = next, !more; c.isOver() {
				return true
			}
		}
	}
	return true
}

// isOver reports whether no more pending entries are looked at.
func (c *sweeping) isOver() bool {
	return c.ended || c.left == 0 || c.attempts == 0 || len(c.gone) == maxGone
}

// try claims a pending entry, or finds that its entry is gone.
func (c *sweeping) try(run *claimer, p pending) {
	claimed, gone := run.claim(p, true)
	if claimed || gone {
		c.left--
	}
	if gone {
		c.gone = append(c.gone, p.id)
	}
}

// present reports of which pending entries, at most 64 in the order of their IDs, the entries exist: a bit for
// each. It walks along the entries, which takes less than to look up each, unless there are many in between.
func (v *view) present(all []pending) (there uint64) {
	i, steps := 0, 8*len(all)
	v.each(all[0].id, func(id ID, _ entry) bool {
		for i < len(all) && all[i].id.less(id) {
			i++
		}
		if i < len(all) && all[i].id == id {
			there |= 1 << i
			i++
		}
		steps--
		return i < len(all) && steps > 0
	})
	for ; steps == 0 && i < len(all); i++ {
		if v.has(all[i].id) {
			there |= 1 << i
		}
	}
	return there
}

// cursor is where the next call goes on, 0-0 at the end.
func (c *sweeping) cursor(s *stream, g *group) (id ID) {
	var next [1]pending
	if !c.ended && len(s.pendingFrom(g, c.from, next[:])) > 0 {
		id = next[0].id
	}
	return id
}

// pendingFrom fills dst with what is pending in a group from an ID on.
func (v *view) pendingFrom(g *group, from ID, dst []pending) []pending {
	n := 0
	v.eachPending(g, nil, from, func(p pending) bool {
		dst[n] = p
		n++
		return n < len(dst)
	})
	return dst[:n]
}
