package ownership

import (
	"maps"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// departed is a node that a table dropped and that may still serve under an older one: it stood
// still, was declared dead, and ran again before the table was issued, when everybody still called
// the older one current. The take-over asks it like the others, until it acknowledges, or refuses
// the connection (its process has ended), or has been silent for the stall limit. A node that is
// silent for so long stands still; when it runs again it fences itself, and hears of the table
// before it serves.
type departed struct {
	ring.Member
	until time.Duration // when silence proves that it does not serve
}

// noteDeparted updates the list of departed nodes when a table replaces another.
func (m *Machine) noteDeparted(now time.Duration, old, next *ring.Table) {
	if old != nil {
		for _, o := range old.Nodes {
			noted := slices.ContainsFunc(m.departed, func(d *departed) bool { return d.Name() == o.Name() })
			if !noted && o.Name() != m.name {
				m.departed = append(m.departed, &departed{o, now + m.cfg.StallLimit})
			}
		}
	}
	m.departed = slices.DeleteFunc(m.departed, func(d *departed) bool {
		// If another process listens at the address, the old one has ended.
		back := slices.ContainsFunc(next.Nodes, func(o ring.Member) bool { return o.Addr == d.Addr })
		return back || now > d.until
	})
}

// takeOver asks all other nodes to obey a table, before this node serves what the table gave it. If
// an owner has died, the take-over is the last step of the failover that the coordinator decided
// (ring.Plan).
type takeOver struct {
	table *ring.Table
	asks  []*ask
	ended map[string]bool // nodes that acknowledged the table
	// cutOff is what nodes held that acknowledged the table and were given up before they had handed that over.
	cutOff map[string]ring.PartitionSet
}

// ask is one node that has not acknowledged the table yet, or holds something that was gained.
type ask struct {
	ring.Member
	id       uint64
	gone     *departed     // nil: it is of the table, or alive
	asked    bool          // an Ask is under way
	next     time.Duration // otherwise: when to ask again
	attempts int

	answered bool              // it obeys the table, but
	held     ring.PartitionSet // holds these of what was gained
}

// due returns when the next ask has to be looked at.
func (t *takeOver) due() time.Duration {
	at := never
	for _, a := range t.asks {
		if a.gone != nil {
			at = min(at, a.gone.until)
		}
		if !a.asked {
			at = min(at, a.next)
		}
	}
	return at
}

// beginTakeOver begins the take-over of what the view gained, and ends the one under way, if any.
func (m *Machine) beginTakeOver(now time.Duration) {
	if m.takeOver != nil {
		m.takeOver = nil
		m.do(CancelAsks{})
	}
	unasked := m.unasked()
	maps.DeleteFunc(m.ahead, func(name string, epoch uint64) bool {
		_, here := m.adopted[name]
		gone := slices.ContainsFunc(m.departed, func(d *departed) bool { return d.Name() == name })
		return epoch <= m.view.Epoch() || !here && !gone
	})
	if m.view.Count(Gained) == 0 {
		return
	}
	t := &takeOver{table: m.view.Table, ended: make(map[string]bool), cutOff: make(map[string]ring.PartitionSet)}
	m.takeOver = t
	for _, o := range unasked {
		t.asks = append(t.asks, &ask{Member: o, id: m.newID(), next: now})
	}
	if !m.cfg.Broken.ForgetDeparted {
		for _, d := range m.departed {
			t.asks = append(t.asks, &ask{Member: d.Member, id: m.newID(), gone: d, next: now})
		}
	}
	m.askAgain(now)
}

func (m *Machine) newID() uint64 {
	m.ids++
	return m.ids
}

// unasked returns the nodes that have yet to acknowledge an epoch as new as the newest gain: those
// of the table, and others that are alive, since a node that leaves serves until it hears of the
// table. It forgets what it knows of nodes that are gone.
func (m *Machine) unasked() (list []ring.Member) {
	newest, known := m.view.Newest, m.adopted
	if m.cfg.Broken.AskBySince {
		newest = m.newestData()
	}
	m.adopted = make(map[string]uint64, len(m.view.Table.Nodes))
	add := func(o ring.Member) {
		m.adopted[o.Name()] = known[o.Name()]
		if known[o.Name()] < newest {
			list = append(list, o)
		}
	}
	for i, o := range m.view.Table.Nodes {
		if i != m.view.Self {
			add(o)
		}
	}
	for _, o := range m.alive {
		if o.ID != m.cfg.ID && m.view.Table.NodeIndex(o.ID, o.Boot) < 0 {
			add(o)
		}
	}
	return list
}

// newestData is the newest epoch in which the data of a gained partition began.
func (m *Machine) newestData() (newest uint64) {
	for p, s := range m.view.Standing {
		if s == Gained {
			newest = max(newest, m.view.Table.Since[p])
		}
	}
	return newest
}

// askAgain asks every node whose time has come. When all have answered it claims what was gained, but
// for what is held.
func (m *Machine) askAgain(now time.Duration) {
	t := m.takeOver
	if t == nil {
		return
	}
	for _, a := range slices.Clone(t.asks) {
		switch {
		case a.gone != nil && now >= a.gone.until:
			m.forget(a)
		case a.asked || now < a.next:
		case a.gone == nil && t.table.NodeIndex(a.ID, a.Boot) < 0 && !m.lives(a.Name()):
			m.forget(a) // it was asked only because it was alive
		default:
			within := TakeTimeout
			if a.gone != nil {
				within = min(within, a.gone.until-now)
			}
			a.asked = true
			m.do(Ask{ID: a.id, Member: a.Member, Table: t.table, Within: within, Attempt: a.attempts})
			a.attempts++
		}
	}
	m.claimGained()
}

// endAsk removes a node that need not be asked any more.
func (m *Machine) endAsk(a *ask) {
	t := m.takeOver
	t.asks = slices.DeleteFunc(t.asks, func(o *ask) bool { return o == a })
	if a.gone != nil {
		m.departed = slices.DeleteFunc(m.departed, func(d *departed) bool { return d == a.gone })
	}
}

// forget removes a node that is gone, and what it said. What it held it has not handed over, and will not.
func (m *Machine) forget(a *ask) {
	delete(m.ahead, a.Name())
	if !m.cfg.Broken.ForgetHeld {
		held := m.takeOver.cutOff[a.Name()]
		held.AddAll(&a.held)
		m.takeOver.cutOff[a.Name()] = held
	}
	m.endAsk(a)
}

// asked returns the ask of the take-over under way, nil if there is none.
func (m *Machine) asked(id uint64) *ask {
	if m.takeOver == nil {
		return nil
	}
	i := slices.IndexFunc(m.takeOver.asks, func(a *ask) bool { return a.id == id })
	if i < 0 {
		return nil
	}
	return m.takeOver.asks[i]
}

// Acknowledged is the event that a node answered an Ask with its name, the epoch that it obeys, and
// what it has lost but somebody there still holds. The node is asked again while it holds something
// that was gained here.
func (m *Machine) Acknowledged(now time.Duration, id uint64, name string, epoch uint64, held ring.PartitionSet) {
	m.mustBe(idle)
	a := m.asked(id)
	switch {
	case a == nil:
		return // canceled meanwhile
	case name != a.Name() && !m.cfg.Broken.AnyoneAcknowledges:
		m.forget(a) // another process answers at the address, so this one has ended
	case epoch < m.takeOver.table.Epoch:
		m.retry(now, a)
	default:
		m.takeOver.ended[a.Name()] = true
		m.ahead[a.Name()] = max(m.ahead[a.Name()], epoch)
		m.noteHeld(now, a, held)
	}
	m.askAgain(now)
}

// noteHeld ends an ask that was acknowledged, unless the node holds something that was gained here.
func (m *Machine) noteHeld(now time.Duration, a *ask, held ring.PartitionSet) {
	gained := m.view.gained()
	a.answered, a.held = true, held.Intersect(&gained)
	switch {
	case m.cfg.Broken.AskOnce && !a.held.Empty():
		a.next = never
	case !a.held.Empty():
		a.asked, a.next = false, now+HeldPeriod
		if a.gone != nil {
			a.gone.until = max(a.gone.until, now+m.cfg.StallLimit) // it is not silent
		}
	default:
		if have, known := m.adopted[a.Name()]; known {
			m.adopted[a.Name()] = max(have, m.takeOver.table.Epoch)
		}
		m.endAsk(a)
	}
}

// Failed is the event that an Ask had no valid answer. refused says that nobody listens at the
// node's address: its process has ended, or is about to start.
func (m *Machine) Failed(now time.Duration, id uint64, refused bool) {
	m.mustBe(idle)
	a := m.asked(id)
	switch {
	case a == nil:
		return
	case a.gone != nil && refused:
		m.forget(a)
	default:
		m.retry(now, a)
	}
	m.askAgain(now)
}

func (m *Machine) retry(now time.Duration, a *ask) { a.asked, a.next = false, now+RetryPeriod }

// claimGained turns the copies of what was gained into the node's own data, when all have answered:
// no other node serves these partitions any more. What is held, here or elsewhere, is claimed later.
//
// It claims nothing by a table while another node is known to obey a newer one. The newer table may
// drop this node, and give what was gained to a node that never saw this table. If the table before
// did not name this node either, that new owner asks nobody about it. The newer table is about to
// arrive here, and the take-over goes on by it.
func (m *Machine) claimGained() {
	t := m.takeOver
	if m.outpaced() && !m.cfg.Broken.ClaimOutpaced {
		return
	}
	held := m.view.Held
	for _, a := range t.asks {
		if !a.answered {
			return
		}
		held.AddAll(&a.held)
	}
	only := m.view.without(&held)
	free := only.Count(Gained)
	if free == m.view.Count(Gained) {
		m.takeOver = nil
	}
	if free == 0 {
		return
	}
	m.pending, m.unclaimed = claiming, held
	m.do(Settle{m.view.withGained(&held)}) // no source may continue the copies
	m.do(Claim{only, func(source string, p uint16) bool {
		cutOff := t.cutOff[source]
		ended := t.ended[source] || m.adopted[source] > 0 && m.adopted[source] >= m.view.Newest
		return ended && !cutOff.Has(p)
	}})
}

// outpaced reports whether another node is known to obey a newer table. What nodes said that are
// gone does not count: that table may have been lost with them.
func (m *Machine) outpaced() bool {
	for _, epoch := range m.ahead {
		if epoch > m.view.Epoch() {
			return true
		}
	}
	return false
}

// Claimed is the answer to Claim.
func (m *Machine) Claimed(now time.Duration) {
	m.mustBe(claiming)
	m.view = m.view.withGained(&m.unclaimed)
	m.barrier(now, takingOver)
}

// serveClaimed serves what was claimed.
func (m *Machine) serveClaimed() {
	m.do(Refeed{m.view})
	m.do(Obey{m.view})
}
