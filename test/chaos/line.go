package chaos

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// A line is some clients that wait for one key at different proxies, each a while after the one before:
//
//	BLPOP line:7 2             ─┐
//	BLPOP line:7 beside:7 2     ├─ RPUSH line:7 0 1 2     they get 0, 1 and 2, in this order
//	BLPOP line:7 2             ─┘
//
// A round is believed whatever its order if something may have happened to the nodes of its keys, or if the machine
// was so busy that a client may have come to the node behind a later one.
type lining struct {
	x       *Rig
	name    string
	waiters []*Session
	others  []*Session // one at each proxy

	mu     sync.Mutex
	served int     // rounds in which all were served
	jumped []round // those of them in another order
}

// round is what is known of one.
type round struct {
	keys     []string // of the commands
	asked    []string // the keys of each waiter
	from, to time.Time
	slowest  time.Duration // of the commands while they came
	serving  time.Duration // from the push to the last reply
	order    []string      // the items in the order of the waiters
	hurried  bool          // the clients were told to stop meanwhile
}

const (
	lines         = 2
	waitersOfLine = 3
	// keysOfLine is how many keys a line waits for, one after the other. Of many some would lie in the partitions that
	// hostile scripts hold.
	keysOfLine = 64
	// lineTime is the time between two waiters of a line.
	lineTime = 300 * time.Millisecond
	// lineLag bounds the time that other commands take meanwhile: those that take longer might have overtaken a waiter.
	lineLag = lineTime / 3
)

// startLines has clients wait in lines.
func (x *Rig) startLines() {
	proxies := x.C.ByRole("proxy")
	for i := range lines {
		g := &lining{x: x, name: fmt.Sprintf("line-%d", i)}
		x.lines = append(x.lines, g)
		for j := range waitersOfLine {
			p := proxies[j%len(proxies)]
			g.waiters = append(g.waiters, x.NewSession(p, fmt.Sprintf("%s-%d-at-%s", g.name, j, p.ID)))
		}
		for _, p := range proxies { // behind the waiters, which a round locks first
			g.others = append(g.others, x.NewSession(p, fmt.Sprintf("%s-pusher-at-%s", g.name, p.ID)))
		}
		x.Running.Go(g.run)
	}
}

// run has the clients wait until they stop.
func (g *lining) run() {
	s := g.others[0]
	for n := 0; !g.x.Stopped(); n++ {
		ok := g.x.Unpaused(func() bool {
			return g.x.Divided.Load() || !g.x.Tables.atLevel(ring.Level) || g.round(fmt.Sprintf("%s:%d", g.name, n%keysOfLine))
		})
		if !ok {
			return
		}
		harness.SleepUpTo(lineTime, s.Rng)
	}
}

// round has all wait for a key once. It returns false if a connection has failed.
func (g *lining) round(key string) bool {
	r := round{keys: []string{key}, from: time.Now()}
	for _, s := range g.waiters {
		s.busy.Lock()
		defer s.busy.Unlock()
	}
	for _, s := range g.waiters {
		keys := key
		if beside := "beside:" + key; s.Rng.IntN(3) == 0 {
			keys += " " + beside
			r.keys = append(r.keys, beside)
		}
		r.asked = append(r.asked, keys)
		if err := s.Link.Send([]byte("BLPOP " + keys + " 2\r\n")); err != nil {
			g.x.Violate("%s: cannot send: %v", s.name, err)
			return false
		}
		if !g.passes(key, &r) {
			return false
		}
	}
	push := g.others[g.others[0].Rng.IntN(len(g.others))]
	begin := time.Now()
	if !g.command(push, "RPUSH", key, "0", "1", "2") || !g.serves(key, begin, &r) {
		return false
	}
	g.ends(r)
	return g.command(push, "DEL", key)
}

// passes has other clients ask for the key at all proxies until the next waiter may come.
func (g *lining) passes(key string, r *round) bool {
	begin := time.Now()
	for time.Since(begin) < lineTime && !g.x.Stopped() {
		for _, s := range g.others {
			asked := time.Now()
			if !g.command(s, "EXISTS", key) {
				return false
			}
			r.slowest = max(r.slowest, time.Since(asked))
		}
		harness.SleepUpTo(lineTime/10, g.others[0].Rng)
	}
	r.hurried = r.hurried || time.Since(begin) < lineTime
	return true
}

// command executes a command that answers a number. It returns false if the connection has failed.
func (g *lining) command(s *Session, args ...string) bool {
	s.Add(func(reply []byte) {
		if _, ok := resp.DecodeInt(reply); !ok {
			g.x.Outcome(s, reply, "")
		}
	}, args...)
	return s.Exchange()
}

// serves reads what the waiters get, since items were pushed at begin.
func (g *lining) serves(key string, begin time.Time, r *round) bool {
	for _, s := range g.waiters {
		reply, err := s.receive(begin)
		if err != nil {
			g.x.Violate("%s: no reply after %v: %v", s.name, time.Since(begin), hung(err))
			return false
		}
		texts, err := flat(reply)
		switch {
		case resp.IsError(reply):
			g.x.Outcome(s, reply, "")
		case err == nil && len(texts) == 2 && string(texts[0]) == key:
			r.order = append(r.order, string(texts[1]))
		case err != nil || len(texts) > 0:
			g.x.Violate("%s: BLPOP %s answers %.80q", s.name, key, reply)
		}
	}
	r.to = time.Now()
	r.serving = r.to.Sub(begin)
	return true
}

// ends notes a round.
func (g *lining) ends(r round) {
	if len(r.order) < waitersOfLine { // an error, or the time is up
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.served++; !slices.IsSorted(r.order) {
		g.jumped = append(g.jumped, r)
	}
}

// mayJump reports whether the order of a round may be another one than that of the waiters.
func (x *Rig) mayJump(r *round) bool {
	from, to := r.from.Add(-watchLag), r.to.Add(watchLag)
	return r.hurried || x.Network != nil || r.slowest >= lineLag || r.serving >= member.ClaimTurn || x.Pulse.Missed(from, to) > 0 ||
		slices.ContainsFunc(r.keys, func(key string) bool { return !x.isCalm(ring.PartitionOf([]byte(key)), from, to) })
}

// isCalm reports whether one node had the partition all the time, and nothing happened to that node.
func (x *Rig) isCalm(partition uint16, from, to time.Time) bool {
	owner := ""
	for at := from; at.Before(to.Add(watchLag)); at = at.Add(watchLag) {
		if x.Tables.movingAbout(partition, at) {
			return false
		}
		for _, m := range x.C.ByRole("node") {
			if !x.Tables.ownedAbout(m.ID, partition, at) {
				continue
			}
			if owner != "" && owner != m.ID {
				return false
			}
			owner = m.ID
		}
	}
	x.Mu.Lock()
	defer x.Mu.Unlock()
	return !slices.ContainsFunc(x.deaths, func(d death) bool { return d.node == owner && d.at.Before(to) && d.until.After(from) }) &&
		!slices.ContainsFunc(x.strokes, func(s *stroke) bool {
			return (s.node == "" || s.node == owner) && !s.at.After(to) && (s.until.IsZero() || s.until.After(from))
		})
}

// stroke is a fault that a test does to a node.
type stroke struct {
	node  string // "": all
	at    time.Time
	until time.Time // zero: it goes on
}

// strikes notes a fault of a node, or of all if that is nil, while it does it.
func (x *Rig) strikes(victim *harness.Member, do func()) {
	if victim != nil {
		x.hearing.lastLook(victim)
	}
	s := &stroke{at: time.Now()}
	if victim != nil {
		s.node = victim.ID
	}
	x.Mu.Lock()
	x.strokes = append(x.strokes, s)
	x.Mu.Unlock()
	do()
	x.Mu.Lock()
	defer x.Mu.Unlock()
	s.until = time.Now()
}

// judgeLines judges those who were served ahead of others.
func (x *Rig) judgeLines() {
	if x.Evicts || len(x.lines) == 0 {
		return
	}
	served, explained := 0, 0
	for _, g := range x.lines {
		g.mu.Lock()
		served += g.served
		for _, r := range g.jumped {
			if x.mayJump(&r) {
				explained++
				continue
			}
			x.Violate("%s: clients that came from %s on to wait for %q got the items %v at %s, after %v, though nothing has happened; commands meanwhile took up to %v",
				g.name, Clock(r.from), r.asked, r.order, Clock(r.to), r.serving.Round(time.Microsecond), r.slowest.Round(time.Millisecond))
		}
		g.mu.Unlock()
	}
	x.T.Logf("lines: all clients were served %d times, of which %d in another order, as a fault explains", served, explained)
}
