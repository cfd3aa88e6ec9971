package proxy

import (
	"math"
	"strconv"
	"time"
)

// WAIT asks the nodes how many copies have all that was written to them before, again and again: no node waits for longer than
// a moment, since others' commands stand behind the question.

// waiting is what WAIT has found out.
type waiting struct {
	replicas int64 // that are waited for
	least    int64 // of the nodes' answers in this round
	best     int64 // of the rounds in which all have answered
}

// beginWait sets the question and the time up; 0 milliseconds is for ever.
func (c *census) beginWait(replicas, millis int64) {
	c.wait.replicas = replicas
	c.question = [][]byte{c.args[0], strconv.AppendInt(nil, replicas, 10), c.args[2]}
	c.deadline = math.MaxInt64 / 2 // sums with it do not overflow
	if limit := int64(math.MaxInt64 / time.Millisecond / 2); millis > 0 && millis < limit {
		c.deadline = c.s.w.loop.Now() + time.Duration(millis)*time.Millisecond
	}
}

// waited reports whether WAIT is to be answered after this round.
func (c *census) waited() bool {
	if c.want.empty() {
		c.wait.best = max(c.wait.best, c.wait.least)
		return c.wait.best >= c.wait.replicas
	}
	return false
}
