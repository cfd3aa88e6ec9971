package wide

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	firstPause = 10 * time.Millisecond // before nodes are asked again
	maxPause   = 100 * time.Millisecond
)

// Rounds asks nodes until all partitions are covered: each round asks every node about those of its
// partitions that no answer has covered yet. It is a step function like the Machine that it asks
// through.
type Rounds struct {
	// First is the first partition that is asked about, and End, unless it is 0, the one behind the last.
	First, End int
	// Anew: each round asks about everything again.
	Anew bool
	// Deadline is when the last round may begin, but for one behind a round that has covered something: a
	// node's answer may take longer than until Deadline, and only then are those asked again whose
	// questions were lost meanwhile.
	Deadline time.Duration
	// Broken is nil except in simulations.
	Broken *Broken

	want    ring.PartitionSet // what no answer has covered yet
	begun   bool
	told    bool    // some node was asked, in whichever round
	gained  bool    // this round has covered something
	asked   []asked // in this round, by the requests' IDs
	pending int     // answers of this round still to come
	pause   time.Duration
	raw     []byte // of the last question, to make the next one in
}

// Broken names rules that a simulation breaks, to check that it notices.
type Broken struct {
	TrustAnswers bool // a node is believed to have covered whatever it was asked about
}

// asked is a question to a node, about some of its partitions.
type asked struct {
	node  *order.Node
	share ring.PartitionSet
}

// Restart has the next round ask about everything again, as if it were the first.
func (r *Rounds) Restart() { r.begun, r.told, r.pause = false, false, 0 }

// Expired reports whether no further round may begin.
func (r *Rounds) Expired(now time.Duration) bool { return now > r.Deadline && !r.gained }

// Ask begins a round: it asks every node that owns wanted partitions and has an open pipe with
// room. q is the request of each question, except for its ID. over reports that no node was asked,
// or that all have answered already.
func (r *Rounds) Ask(m *order.Machine, q order.Request, question [][]byte, now time.Duration) (over bool) {
	if r.Anew || !r.begun {
		r.begun = true
		r.want.AddFrom(r.First)
		if r.End > 0 {
			var behind ring.PartitionSet
			behind.AddFrom(r.End)
			r.want.RemoveAll(&behind)
		}
	}
	r.asked, r.gained = r.asked[:0], false
	r.pending = 1 // until all are asked
	for _, n := range m.Nodes() {
		share := r.want.Intersect(n.Owns())
		if share.Empty() {
			continue
		}
		q.ID = int32(len(r.asked))
		r.raw = member.AppendEach(r.raw[:0], &share, question...)
		if m.Ask(n.Pipe(q.Session.Lane()), q, r.raw, now) {
			r.told = true
			r.pending++
			r.asked = append(r.asked, asked{n, share})
		}
	}
	return r.Answered()
}

// Told reports whether some node was asked, in this round or in one before.
func (r *Rounds) Told() bool { return r.told }

// Questions is the number of nodes that are asked in this round.
func (r *Rounds) Questions() int { return len(r.asked) }

// Asked is the node that a question of this round went to.
func (r *Rounds) Asked(id int32) *order.Node { return r.asked[id].node }

// Share is the set of partitions that a question of this round is about.
func (r *Rounds) Share(id int32) ring.PartitionSet { return r.asked[id].share }

// Covered reports whether all partitions are covered.
func (r *Rounds) Covered() bool { return r.want.Empty() }

// Cover notes which partitions an answer covers. The next round asks the owners by the table about
// the partitions that the node was asked about and did not cover.
func (r *Rounds) Cover(m *order.Machine, id int32, covered *ring.PartitionSet) {
	q := &r.asked[id]
	if r.Broken != nil && r.Broken.TrustAnswers {
		covered = &q.share
	}
	if hit := r.want.Intersect(covered); !hit.Empty() && !r.Anew {
		r.gained = true
	}
	r.want.RemoveAll(covered)
	missing := q.share
	missing.RemoveAll(covered)
	m.Distrust(q.node, &missing)
}

// Answered counts a question of this round that was answered, or never will be. over reports that
// it was the last one.
func (r *Rounds) Answered() (over bool) {
	r.pending--
	return r.pending == 0
}

// Pause is how long to wait before the next round. Call it once a round.
func (r *Rounds) Pause(now time.Duration) time.Duration {
	r.pause = max(r.pause, firstPause)
	left := max(r.Deadline-now, 0) + time.Millisecond
	pause := min(r.pause, left)
	r.pause = min(2*r.pause, maxPause)
	return pause
}
