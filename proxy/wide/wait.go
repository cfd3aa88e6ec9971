package wide

import (
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// Copies asks all nodes how many copies have everything that was written before, for WAIT. No node waits for long
// before it answers, so this is asked round after round. It is a step function as Rounds is.
type Copies struct {
	Rounds Rounds
	least  int64 // of the answers of this round
}

// NewCopies returns one without a deadline: who waits has its own.
func NewCopies() Copies {
	return Copies{Rounds: Rounds{Anew: true, Deadline: math.MaxInt64 / 2}} // sums with it do not overflow
}

// copiesQuestion is what nodes are asked. They count, whatever is waited for.
var copiesQuestion = [][]byte{[]byte("WAIT"), []byte("0"), []byte("0")}

// Ask begins a round, see Rounds.Ask.
func (c *Copies) Ask(m *order.Machine, q order.Request, now time.Duration) (over bool) {
	c.least = math.MaxInt64
	return c.Rounds.Ask(m, q, copiesQuestion, now)
}

// Add takes the answer to a question. One that is no count covers nothing.
func (c *Copies) Add(m *order.Machine, id int32, reply []byte) {
	covered, inner, ok := member.ParseAnswer(reply)
	n, number := resp.DecodeInt(inner)
	if ok && number {
		c.Rounds.Cover(m, id, covered)
		c.least = min(c.least, n)
	}
}

// Count returns the number of copies of a round that is over: the least number of all nodes. If ok is false, it does
// not cover all partitions.
func (c *Copies) Count() (copies int64, ok bool) { return c.least, c.Rounds.Covered() }
