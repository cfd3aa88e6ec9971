package chaos

import (
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// A visitor is a listener at a node. Its connection ends with the node, and it listens again when the node is back.
// Speakers do not wait for it:
//
//	visitor   ├── visit ──────────────────┤                   ├── the next visit ──
//	its node ──────────────────────── killed ── back, ready ────────────────────▶ time
//	                        ◀─ lossLimit ─▶
//
// During a visit it hears everything, or its node counts a gap, as with listeners at proxies. What was acknowledged
// shortly before the end may go with the connection. A node that leaves in order shows its clients everything until it
// closes their connections.
type visitor struct {
	*listener
	now    *visit // nil: it does not listen
	visits int    // so far
}

// visit is a time in which a visitor was subscribed.
type visit struct {
	v     *visitor
	begin time.Time
	end   time.Time // of the connection; zero: it lasts
}

// visit has a session listen at a node, which may end. Speakers must have been started.
func (x *Rig) visit(node *harness.Member) {
	g := x.hearing
	v := &visitor{listener: &listener{Session: x.NewSession(node, listenerAt(node)), g: g}}
	counted := &counts{}
	g.note(func() {
		g.visitors = append(g.visitors, v)
		g.counts[v.name] = counted
		for _, s := range g.said {
			s.heardBy[v.name] = true
		}
	})
	x.Running.Go(func() { counted.watch(x, node) })
	x.Running.Go(v.run)
}

// run visits the node again and again until everything that was said is heard.
func (v *visitor) run() {
	for !v.X.Stopped() && !v.X.Tables.atLevel(ring.ClaimLevel) {
		time.Sleep(harness.PollInterval)
	}
	v.Link.Conn.Close() // its node may have known no table yet
	for !v.ends() && !v.visitOnce() {
		time.Sleep(harness.PollInterval)
	}
}

// visitOnce listens until the connection ends. It reports whether there is nothing more to hear.
func (v *visitor) visitOnce() (done bool) {
	link, err := v.X.dial(v.at)
	if err != nil {
		return false
	}
	defer link.Conn.Close()
	// Before its first table a node is alone. This is the same process: the connection ends with it.
	if _, err := harness.Get(v.at.Admin, "/readyz"); err != nil || v.subscribe(link) != nil {
		return false
	}
	v.g.comes(v)
	if v.hear(link) == nil {
		return true
	}
	v.g.goes(v).judgeEnd(v.X)
	return false
}

// comes notes that a visit begins.
func (g *hearing) comes(v *visitor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.beginsLocked(v.listener)
	v.now = &visit{v: v, begin: v.since}
	v.visits++
}

// goes notes that a visit has ended, and what was not heard in it.
func (g *hearing) goes(v *visitor) (ended *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ended = v.now
	v.now, ended.end = nil, time.Now()
	for m, s := range g.said {
		switch {
		case s.heardBy[v.name] || s.missedBy[v.name]:
		case s.acked.IsZero(): // it will be acknowledged behind the end, if ever
			s.heardBy[v.name] = true
		default:
			s.missedBy[v.name] = true
			g.lost = append(g.lost, lostMessage{message: m, listener: v.name, sent: s.sent, acked: s.acked, visit: ended})
		}
	}
	return ended
}

// listenersSince returns how many listeners have listened since then.
func (g *hearing) listenersSince(then time.Time) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n = len(g.names)
	for _, v := range g.visitors {
		if v.now != nil && v.now.begin.Before(then) {
			n++
		}
	}
	return n
}

// lastLook looks at what a node has counted that may be about to end.
func (g *hearing) lastLook(node *harness.Member) {
	if g == nil {
		return
	}
	for _, v := range g.visitors {
		if v.at == node {
			g.counts[v.name].look(node)
		}
	}
}

// wentWithItsVisit reports whether a message was not heard because the connection of a visitor ended: it was
// acknowledged, or a key expired, behind the death of the node or the end of the connection, or shortly before.
func (m *lostMessage) wentWithItsVisit(x *Rig) bool {
	if m.visit == nil {
		return false
	}
	happened, from := m.acked, m.visit.lastHearing(x)
	if m.channel == expired {
		happened = happened.Add(noteTime + sweepTime)
	}
	return !happened.Before(from.Add(-lossLimit - x.Pulse.Missed(happened, from)))
}

// lastHearing returns until when a visitor must have been shown everything: until its node died or stood still, or else
// until its connection ended.
func (t *visit) lastHearing(x *Rig) time.Time {
	s := t.stroke(x)
	if s == nil {
		return t.end
	}
	x.Mu.Lock()
	defer x.Mu.Unlock()
	for _, d := range x.deaths { // in order
		if d.node == t.v.at.ID && !d.at.Before(s.at) && d.at.Before(t.end) {
			return d.at
		}
	}
	return t.end
}

// stroke returns the last fault of the node before a visit ended, as it is known by now, nil for none.
func (t *visit) stroke(x *Rig) (last *stroke) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	for _, s := range x.strokes { // in order
		if s.node == t.v.at.ID && s.at.Before(t.end) {
			known := *s
			last = &known
		}
	}
	return last
}

// judgeEnd notes a violation if a connection has just ended though nothing has happened to the node.
func (t *visit) judgeEnd(x *Rig) {
	s := t.stroke(x)
	if s != nil && (s.until.IsZero() || t.end.Before(s.until.Add(harness.AnswerTime+x.Pulse.Missed(s.until, t.end)))) {
		return
	}
	if !x.gaveUpSince(t.end.Add(-harness.AnswerTime), nil) {
		x.Violate("%s: its connection ended at %s, though nothing has happened to its node", t.v.name, Clock(t.end))
	}
}
