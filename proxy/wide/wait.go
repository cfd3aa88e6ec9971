package wide

import (
	"errors"
	"math"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// wait asks the nodes how many copies have everything that was written before, round after round.
// No node waits for long before it answers, since other commands wait behind the question.
type wait struct {
	replicas int64 // that are waited for
	least    int64 // of the nodes' answers in this round
	best     int64 // of the rounds in which all have answered
}

func askWait(c *Call, q *Question) error {
	replicas, limit, text := session.ParseWait(c.Args)
	if text != "" {
		return errors.New(text)
	}
	q.AboutNodes, q.Waits = true, true
	q.Words = [][]byte{c.Args[0], strconv.AppendInt(nil, replicas, 10), c.Args[2]}
	q.Rounds.Deadline = math.MaxInt64 / 2 // sums with it do not overflow
	if limit > 0 {
		q.Rounds.Deadline = c.Now + limit
	}
	q.merge = &wait{replicas: replicas}
	return nil
}

// Begin forgets the answers of the round before.
func (m *wait) Begin() { m.least = math.MaxInt64 }

// Add takes a node's number of copies.
func (m *wait) Add(a Answer) error {
	n, ok := resp.DecodeInt(a.Reply)
	m.least = min(m.least, n)
	return malformedUnless(ok)
}

// Finished reports whether there are as many copies as the client waits for.
func (m *wait) Finished(missing *ring.PartitionSet) bool {
	if !missing.Empty() {
		return false
	}
	m.best = max(m.best, m.least)
	return m.best >= m.replicas
}

// Reply appends the number of copies.
func (m *wait) Reply(dst []byte) []byte { return resp.AppendInt(dst, m.best) }
