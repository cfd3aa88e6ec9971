package chaos

import (
	"fmt"
	"time"
)

// counter is a key that one session increments: no INCR may be executed twice.
type counter struct {
	key       string
	partition uint16
	sent      time.Time    // of the last acknowledged INCR
	last      int64        // the reply to that INCR
	unknown   int64        // later INCRs that may have been executed
	acks      []increments // the latest acknowledged numbers, ascending
	era       uint64       // see Rig.Era
}

// increments is a number that a counter had, and when its reply came.
type increments struct {
	n  int64
	at time.Time
}

// keptIncrements is how many numbers a counter remembers: more than one death can undo.
const keptIncrements = 4096

// incremented judges the reply n, which came now, to an INCR that was sent at the time sent.
func (c *counter) incremented(n int64, sent, now time.Time) (*absence, error) {
	last, unknown, since := c.last, c.unknown, c.sent
	lost := c.loss(n, since, now)
	c.last, c.unknown, c.sent = n, 0, sent
	c.note(increments{n, now})
	switch {
	case n > last && n <= last+1+unknown:
		return nil, nil
	case n >= 1 && n <= 1+unknown:
		return lost, nil
	case n >= 1 && n <= last: // it continues from an older number
		lost.shown = uint64(n)
		return lost, nil
	}
	return nil, fmt.Errorf("INCR %s answers %d after %d and %d unknown outcomes: one was executed twice", c.key, n, last, unknown)
}

// loss returns what was lost if the next number is n.
func (c *counter) loss(n int64, since, now time.Time) *absence {
	a := &absence{key: c.key, partition: c.partition, from: since, to: now, floor: uint64(c.last)}
	for _, i := range c.acks {
		if i.n >= n {
			if a.lost == 0 {
				a.acked = i.at
			}
			a.lost++
		}
	}
	return a
}

func (c *counter) note(i increments) {
	for len(c.acks) > 0 && c.acks[len(c.acks)-1].n >= i.n { // these were lost
		c.acks = c.acks[:len(c.acks)-1]
	}
	if len(c.acks) == 2*keptIncrements {
		c.acks = append(c.acks[:0], c.acks[keptIncrements:]...)
	}
	c.acks = append(c.acks, i)
}

// forget accepts n as the counter's number, whatever came before.
func (c *counter) forget(n int64, sent, now time.Time) {
	c.last, c.unknown, c.sent, c.acks = n, 0, sent, []increments{{n, now}}
}
