package ownership

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// handOver is what one table has taken from this node, until the new owners have it.
type handOver struct {
	id      uint64
	missing []string      // names of the heirs that do not have everything yet
	look    time.Duration // when to check whether these are alive
}

// waiter is a TAKE or Release that waits for hand-overs to end.
type waiter struct {
	id        uint64
	release   bool         // Release; otherwise TAKE
	version   ring.Version // of the table that a TAKE brought
	names     bool         // its answer may name what is held
	until     time.Duration
	handOvers []uint64 // that have not ended

	held ring.PartitionSet // of a TAKE: what was held when it came; of a Release: what is held still
}

// beginHandOver begins to wait until the heirs have everything. It also sends them the table,
// because commands wait until they serve, and gossip may take some rounds.
func (m *Machine) beginHandOver(now time.Duration, heirs []string) uint64 {
	h := &handOver{id: m.newID(), missing: slices.Clone(heirs), look: now + heirPatience}
	m.handOvers = append(m.handOvers, h)
	for _, o := range m.view.Table.Nodes {
		if slices.Contains(heirs, o.Name()) {
			m.do(Tell{o, m.view.Table})
		}
	}
	return h.id
}

// Flushed is the event that an heir has everything of a hand-over, or that its stream has ended.
func (m *Machine) Flushed(id uint64, heir string) {
	m.mustBe(idle)
	i := slices.IndexFunc(m.handOvers, func(h *handOver) bool { return h.id == id })
	if i < 0 {
		return // it has ended meanwhile
	}
	h := m.handOvers[i]
	h.missing = slices.DeleteFunc(h.missing, func(name string) bool { return name == heir })
	m.finish(h)
}

// lookAtHeirs stops waiting for heirs that have died. One that gossip takes for dead, but the table
// does not, may be back: then it serves what it has.
func (m *Machine) lookAtHeirs(now time.Duration) {
	for _, h := range slices.Clone(m.handOvers) {
		if now < h.look {
			continue
		}
		h.look = now + heirPatience
		if m.alive != nil {
			h.missing = slices.DeleteFunc(h.missing, func(name string) bool { return !m.lives(name) && !m.isListed(name) })
		}
		m.finish(h)
	}
}

// finish ends a hand-over that waits for no heir any more.
func (m *Machine) finish(h *handOver) {
	if len(h.missing) > 0 {
		return
	}
	m.handOvers = slices.DeleteFunc(m.handOvers, func(o *handOver) bool { return o == h })
	m.do(Finish{h.id})
	for _, w := range m.waiters {
		w.handOvers = slices.DeleteFunc(w.handOvers, func(id uint64) bool { return id == h.id })
	}
	m.answerWaiters()
}

// answerWaiters answers those that wait for nothing any more.
func (m *Machine) answerWaiters() {
	for _, w := range slices.Clone(m.waiters) {
		if !w.waits() {
			m.endWait(w)
			m.answer(w)
		}
	}
}

// waits reports whether the waiter has something to wait for.
func (w *waiter) waits() bool { return len(w.handOvers) > 0 || w.release && !w.held.Empty() }

// Take is the event that another node sent DUNLIN TAKE with the table t, which the
// caller has passed to Install. The Reply with this id says whether this node obeys the table: it
// executes nothing under an older one, and the heirs have everything that it lost, but for what the
// Reply names as held.
func (m *Machine) Take(now time.Duration, id uint64, t *ring.Table) {
	w := &waiter{id: id, version: t.Version(), names: t.Level >= ring.HoldLevel, until: now + handOverPatience}
	m.await(w, m.cfg.Broken.AckBeforeFlush)
}

// Release is the event that the node wants to leave, and has installed a table that takes
// everything from it. The Reply with this id follows when the heirs have everything. Until then the
// node must stay a member of its cluster, because nobody waits for data from a node that is gone.
func (m *Machine) Release(id uint64) {
	m.await(&waiter{id: id, release: true, until: never}, m.cfg.Broken.LeaveEarly)
}

// await answers w when the present hand-overs have ended, or at once if early.
func (m *Machine) await(w *waiter, early bool) {
	m.mustBe(idle)
	for _, h := range m.handOvers {
		w.handOvers = append(w.handOvers, h.id)
	}
	if w.held = m.view.Held; w.waits() && !early {
		m.waiters = append(m.waiters, w)
		return
	}
	m.answer(w)
}

func (m *Machine) endWait(w *waiter) {
	m.waiters = slices.DeleteFunc(m.waiters, func(o *waiter) bool { return o == w })
}

// answer answers a waiter whose hand-overs have ended.
func (m *Machine) answer(w *waiter) {
	have := m.view.Table
	if w.release {
		m.do(Reply{ID: w.id, Answer: Obeyed, Epoch: have.Version().Epoch})
		return
	}
	// A node never obeys a table of another lineage, whatever its epoch, so it must not acknowledge
	// one.
	if have == nil || have.Version() != w.version && !have.Descends(w.version) && !m.cfg.Broken.AdoptForeign {
		m.do(Reply{ID: w.id, Answer: NotOfOurOwn})
		return
	}
	if !w.names && !w.held.Empty() {
		m.do(Reply{ID: w.id, Answer: StillBusy})
		return
	}
	m.do(Reply{w.id, Obeyed, have.Epoch, w.held})
}

// expireWaiters answers StillBusy to those that have waited too long. They ask again.
func (m *Machine) expireWaiters(now time.Duration) {
	for _, w := range slices.Clone(m.waiters) {
		if now >= w.until {
			m.endWait(w)
			m.do(Reply{ID: w.id, Answer: StillBusy})
		}
	}
}
