package ownership

import (
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// A transaction that takes long holds its partition. If a table takes that partition from the node
// meanwhile, the transaction goes on for a while, and only this partition waits for it. Everything
// else is handed over, and taken over, as if it were not there:
//
//	this node                                     the next owner of p
//	Install ─▶ Barrier ─▶ BarrierPassed{p}
//	           HandOver, but not of p
//	Take ─────────────────────────▶ Obeyed, but {p} is held ─▶ Claim, but not of p
//	Released p ─▶ HandOver of p              asks again, and once more
//	Take ──── p has arrived there ─▶ Obeyed ─────────────────▶ Claim of p
//
// Until Released, the data of p is what it was when this node served it: no copy, not emptied, not
// claimed, and fed to those to whom it was fed. If a later table gives p back, the node claims it
// behind Released, from the sealed copy that the hold has left.

// held is what the machine knows of a partition that was lost while it was held.
type held struct {
	served *View // the last one that served it
	away   bool  // the table that took it came after an absence
}

// keepHeld notes which partitions the table that is being installed has taken while they were held.
func (m *Machine) keepHeld(set ring.PartitionSet) {
	if m.foreign() {
		clear(m.held) // nobody holds anything any more
	}
	var all ring.PartitionSet
	for p := range uint16(ring.Partitions) {
		_, noted := m.held[p]
		if !noted && set.Has(p) && m.old.Standing[p] == Serving && !m.cfg.Broken.HandHeld {
			m.held[p], noted = held{m.old, m.wasAway()}, true
		}
		if noted {
			all.Add(p)
		}
	}
	m.holding(all)
}

// holding obeys the view with another set of held partitions.
func (m *Machine) holding(set ring.PartitionSet) {
	if set != m.view.Held {
		m.view = m.view.withHeld(set)
		m.do(Obey{m.view})
	}
}

// Released is the event that nobody holds the partition any more, which BarrierPassed has named.
func (m *Machine) Released(now time.Duration, p uint16) {
	m.mustBe(idle)
	lost, ok := m.held[p]
	if !ok {
		return // another cluster's table has made it void
	}
	delete(m.held, p)
	still := m.view.Held
	still.Remove(p)
	m.holding(still)
	for _, w := range m.waiters {
		if w.release {
			w.held.Remove(p)
		}
	}
	others := ring.AllPartitions()
	others.Remove(p)
	m.pending = releasing
	m.do(HandOver{lost.served.without(&others), m.view, lost.away})
}

// released completes Released. id is the hand-over's, 0 if there is none.
func (m *Machine) released(now time.Duration, id uint64) {
	for _, w := range m.waiters {
		if w.release && id != 0 {
			w.handOvers = append(w.handOvers, id)
		}
	}
	m.do(Review{m.view, false})
	m.do(Settle{m.view})
	m.do(AskForCopies{m.view})
	m.do(Refeed{m.view})
	m.answerWaiters()
	m.askAgain(now)
}
