package netloop

import (
	"time"

	"golang.org/x/sys/unix"
)

// Newcomer is a Handler of a conn that is new until it is established. While loops are strained, new
// conns wait behind the others.
type Newcomer interface {
	// IsNew reports whether the conn is still new. Once it is not, IsNew is not called again.
	IsNew() bool
	// IsUrgent reports whether a new conn whose input begins with these bytes does not wait.
	// Whoever claims that too often waits all the same. It must not keep them.
	IsUrgent(first []byte) bool
}

const (
	// Above these shares of the time, new conns wait.
	busyLoops = 0.95
	lateLoops = 0.1
	// newcomersRest is how much longer a loop works for others than it accepts conns, or reads from
	// new ones, while new conns wait. Both get a quarter of the time at most.
	newcomersRest = 3
	// urgentReads is how often a new conn is read from as urgent: a member needs fewer to prove who
	// it is.
	urgentReads = 8
	// urgentPeek is how many bytes of their input new conns show.
	urgentPeek = 32
)

// IsStrained reports whether newcomers have to wait, because some loop hardly keeps up. Any goroutine
// may call it.
func (g *Group) IsStrained() bool { return g.strained() }

// waitsAsNew has a new conn with input wait for its turn, and reports whether it does. Meanwhile the
// loop reads nothing from it, so it takes no memory and the system does not report it.
func (l *Loop) waitsAsNew(c *Conn) bool {
	if !c.newcomer.IsNew() {
		c.newcomer = nil
		return false
	}
	if l.newcomers.Len() == 0 && !l.group.strained() {
		return false
	}
	n, _, err := unix.Recvfrom(c.fd, l.scratch[:urgentPeek], unix.MSG_PEEK)
	if err != nil || n == 0 {
		return false // the end of the input does not wait
	}
	if c.urgent < urgentReads && c.newcomer.IsUrgent(l.scratch[:n]) {
		c.urgent++
		return false
	}
	c.stopReading(stopNew)
	c.place = l.newcomers.PushBack(c)
	return true
}

// leaveNewcomers ends the wait of a new conn.
func (c *Conn) leaveNewcomers() {
	c.loop.newcomers.Remove(c.place)
	c.place = nil
	c.allowReading(stopNew)
}

// readNewcomers reads from the new conns that wait, the oldest first: from one at least, so that
// nobody waits for ever.
func (l *Loop) readNewcomers() {
	if l.newcomers.Len() == 0 {
		return
	}
	begun := l.clock.now()
	limit := newcomersTime(begun-l.now, l.group.strained())
	for first := true; l.newcomers.Len() > 0 && (first || l.clock.now()-begun < limit); first = false {
		l.makeRoom()
		if l.newcomers.Len() == 0 {
			return // what was written has closed them
		}
		c := l.newcomers.Front().Value.(*Conn)
		c.leaveNewcomers()
		if c.stops == 0 {
			c.receive(false)
		}
	}
}

// newcomersTime returns for how long an iteration may read from new conns, after it has worked so
// long for the others.
func newcomersTime(worked time.Duration, strained bool) time.Duration {
	if strained {
		return worked / newcomersRest
	}
	return turnLimit
}
