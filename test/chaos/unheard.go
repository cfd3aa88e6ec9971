package chaos

import (
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// What was said and not heard is judged here: a fault must explain it, and the listener's proxy, or node, must have
// counted it, unless the node ended.

// AllHeard waits until all listeners have heard what was said until now, of keys that expire only if swept is set: that
// takes up to sweepTime, behind the last move of a partition. What they miss is judged now, before another fault
// explains it. A move by plan explains nothing.
func (x *Rig) AllHeard(swept bool) {
	g := x.hearing
	if g == nil || x.Evicts || x.Divided.Load() {
		return
	}
	begin := time.Now()
	missing := g.missing(begin, swept)
	settled := true
	for len(missing) > 0 && settled {
		var due time.Time
		due, settled = x.dueBy(begin, missing)
		if due.Before(time.Now()) {
			break
		}
		time.Sleep(harness.PollInterval)
		missing = g.missing(begin, swept)
	}
	g.givesUp(missing, !settled)
}

// givesUp judges what was not heard, and notes what a fault may explain: the proxy must have counted that. moves:
// a move may explain it, too.
func (g *hearing) givesUp(missing []lostMessage, moves bool) {
	for _, m := range missing {
		g.note(func() {
			if s := g.said[m.message]; s != nil {
				s.missedBy[m.listener] = true
			}
		})
		if m.judged = true; g.judgeLost(m, moves) {
			g.note(func() { g.lost = append(g.lost, m) })
		}
	}
}

// missing returns what was said before a time and is not heard, of keys that expire only if swept is set.
func (g *hearing) missing(before time.Time, swept bool) (all []lostMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m, s := range g.said {
		if !s.sent.Before(before) || !swept && m.channel == expired {
			continue
		}
		for _, l := range g.missersLocked(s) {
			all = append(all, lostMessage{message: m, listener: l, sent: s.sent, acked: s.acked})
		}
	}
	return all
}

// judgeLost judges a message that was not heard, and reports whether a fault may explain that, or, if moves is set, a
// move or the end.
func (g *hearing) judgeLost(m lostMessage, moves bool) bool {
	var end time.Time
	g.note(func() { end = g.ended })
	if moves && m.mayExpireUnnoticed(g.x, g.currentEra(), end) || g.x.hurt(m.sent.Add(-harness.AnswerTime)) {
		return true
	}
	g.x.Violate("%s: %+v is not heard, though nothing has happened", m.listener, m.message)
	return false
}

// judgeChannels judges what was not heard, when all sessions have ended.
func (x *Rig) judgeChannels() {
	g := x.hearing
	if g == nil || x.Evicts {
		return
	}
	g.mu.Lock()
	for m, s := range g.said {
		g.missedLocked(m, s)
	}
	lost, heard := g.lost, g.heard
	g.mu.Unlock()
	missed := map[string]int{}              // by event; "": messages of channels
	explained := map[string][]lostMessage{} // by listener
	for _, m := range lost {
		if m.wentWithItsVisit(x) {
			continue
		}
		if (m.judged || g.judgeLost(m, true)) && !m.wentWithItsKey(x, g.currentEra(), g.ended) {
			explained[m.listener] = append(explained[m.listener], m)
		}
		if strings.Contains(m.channel, ":") {
			m.channel = ""
		}
		missed[m.channel]++
	}
	for _, p := range x.C.ByRole("proxy") {
		g.judgeCounts(p, explained[listenerAt(p)])
	}
	for _, v := range g.visitors {
		g.judgeCounts(v.at, explained[v.name])
		x.T.Logf("%s: it has come %d times", v.name, v.visits)
	}
	x.T.Logf("channels: %d messages were heard, %d were not: %v", heard, len(lost), missed)
}

// judgeCounts judges what the listener at a member has lost by what that has counted.
func (g *hearing) judgeCounts(at *harness.Member, lost []lostMessage) {
	name := listenerAt(at)
	g.counts[name].look(at)
	if g.x.Network != nil {
		return
	}
	for _, wrong := range g.counts[name].unexcused(g.x, lost) {
		g.x.Violate("%s: %s", name, wrong)
	}
}
