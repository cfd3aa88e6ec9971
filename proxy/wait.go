package proxy

import (
	"math"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// WAIT asks the nodes how many copies have all that was written to them before, again and again: no node waits for longer than
// a moment, since others' commands stand behind the question.

// waiting is what WAIT has found out.
type waiting struct {
	replicas int64 // that are waited for
	least    int64 // of the nodes' answers in this round
	best     int64 // of the rounds in which all have answered
}

// beginWait sets the question and the time up.
func (c *census) beginWait() (refusal []byte) {
	replicas, limit, text := session.ParseWait(c.args)
	if text != "" {
		return resp.AppendError(nil, text)
	}
	c.wait.replicas = replicas
	c.question = [][]byte{c.args[0], strconv.AppendInt(nil, replicas, 10), c.args[2]}
	c.deadline = math.MaxInt64 / 2 // sums with it do not overflow
	if limit > 0 {
		c.deadline = c.s.w.loop.Now() + limit
	}
	return nil
}

// waited reports whether WAIT is to be answered after this round.
func (c *census) waited() bool {
	if c.want.Empty() {
		c.wait.best = max(c.wait.best, c.wait.least)
		return c.wait.best >= c.wait.replicas
	}
	return false
}
