package ownership

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Behind a cut of the network, gossip declares the other side's members dead one by one. With 31
// nodes that takes seconds, in which a node of the smaller side sees enough members alive to serve;
// but the larger side serves what that node owns as soon as it has declared that one node dead. So a
// node that serves only with enough others (--min-members) does not count whom gossip calls alive. It
// asks other nodes four times in every Limit, and counts who answers:
//
//	asked ───────────────▶ answered         the other was there, and had not given this node up
//	│◀──────── Limit ─────────────────▶│    so long this word counts
//
// The Limit is less than what others need to declare a silent node dead and to take over. When too few
// words count, the quorum lapses: the node serves nothing at once, and its table is in doubt.

// Quorum decides until when a node may serve, and which others it asks. It is not safe for
// concurrent use.
type Quorum struct {
	Want   int           // number of other nodes that must have been heard; 0: none
	Limit  time.Duration // for how long a word counts
	Broken Broken        // for the simulation

	heard map[string]time.Duration // when who answered was asked, by name
	round time.Duration            // when the last round began
	held  bool                     // enough was heard, and the quorum has not lapsed since
}

// Round begins a round of questions: it returns which of others to ask. As long as everybody answers,
// those are one more than have to. lapsed reports that the quorum has lapsed since the last event: the
// caller raises a Doubt.
func (q *Quorum) Round(now time.Duration, others []string) (ask []string, lapsed bool) {
	lapsed = q.lapses(now)
	maps.DeleteFunc(q.heard, func(_ string, asked time.Duration) bool { return now-asked > q.Limit && !q.Broken.CountOldWords })
	before := q.round
	q.round = now
	for _, name := range others {
		if asked, ok := q.heard[name]; ok && asked >= before {
			ask = append(ask, name)
		}
	}
	if len(ask) > q.Want {
		return ask[:q.Want+1], lapsed
	}
	return others, lapsed
}

// Heard is the event that a node has answered what it was asked at that time. lapsed is that of
// Round; the caller raises the Doubt before it obeys the new Until.
func (q *Quorum) Heard(now, asked time.Duration, name string) (lapsed bool) {
	lapsed = q.lapses(now)
	if q.heard == nil {
		q.heard = make(map[string]time.Duration)
	}
	q.heard[name] = max(q.heard[name], asked)
	q.held = q.held || now <= q.Until()
	return lapsed
}

// Until returns the time after which the node serves nothing, unless it hears more.
func (q *Quorum) Until() time.Duration {
	switch {
	case q.Want <= 0:
		return math.MaxInt64
	case len(q.heard) < q.Want:
		return -1
	case q.Broken.CountOldWords:
		return math.MaxInt64
	}
	words := slices.Sorted(maps.Values(q.heard))
	return words[len(words)-q.Want] + q.Limit
}

// lapses reports, once, that the quorum has lapsed.
func (q *Quorum) lapses(now time.Duration) bool {
	if !q.held || now <= q.Until() {
		return false
	}
	q.held = false
	return !q.Broken.ForgetLapse
}
