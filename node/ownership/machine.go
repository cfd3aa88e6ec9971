package ownership

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// Config is what a Machine needs to know of its node.
type Config struct {
	ID   string // the member's stable id
	Boot int64  // time of its start: with the ID, it names this process

	// StallLimit is the longest time that a node may stand still without fencing itself. A node
	// that a table dropped and that has been silent for longer does not serve: see departed.
	StallLimit time.Duration

	Broken Broken // for the simulation
}

const (
	// RetryPeriod is the time between a failed Ask and the next one.
	RetryPeriod = 100 * time.Millisecond
	// HeldPeriod is the time until a node that holds something is asked again.
	HeldPeriod = 50 * time.Millisecond
	// TakeTimeout is how long a node may take to acknowledge a table: its loops have a second to
	// pass the barrier, and its heirs another one to receive what they inherit.
	TakeTimeout = 2 * time.Second
	// handOverPatience is how long a TAKE waits for heirs before the answer is StillBusy.
	handOverPatience = TakeTimeout / 2
	// heirPatience is the period of the check whether the heirs of a hand-over are alive.
	heirPatience = 500 * time.Millisecond
)

// Machine decides what one node serves. It is a step function: the node calls a method for each
// event, then runs the actions that Actions returns, in order and before the next event. A Machine
// has no lock, goroutine, clock or socket.
//
// now is monotonic time since any fixed instant, and never goes back.
type Machine struct {
	cfg  Config
	name string

	view     *View // what the node obeys, or obeys once the pending step is done
	old      *View // while installing: the view before
	pending  step
	alive    []ring.Member     // nodes that gossip calls alive; nil: not known
	adopted  map[string]uint64 // by node name: the newest epoch that it has acknowledged
	ahead    map[string]uint64 // by node name: the newest epoch that it has said it obeys, in an acknowledgement
	departed []*departed
	takeOver *takeOver // nil: none is under way

	unclaimed ring.PartitionSet // while claiming: what is held, and so claimed later

	held      map[uint16]held // by partition: what the view's Held tells nobody else
	handOvers []*handOver     // under way
	waiters   []*waiter       // for hand-overs to end
	ids       uint64          // the newest of an Ask and a hand-over

	actions, taken []Action
}

// step is the action that the node is running for the machine and will answer with an event.
type step uint8

const (
	idle       step = iota
	installing      // Barrier: behind it, nothing is executed under the old view
	handing         // HandOver of what a table has taken
	releasing       // HandOver of what was held
	claiming        // Claim
	takingOver      // Barrier: behind it, no stream goes into what was claimed
)

// New returns the machine of a node that has no table yet.
func New(cfg Config) *Machine {
	return &Machine{
		cfg: cfg, name: ring.Member{ID: cfg.ID, Boot: cfg.Boot}.Name(), view: None,
		adopted: make(map[string]uint64), ahead: make(map[string]uint64), held: make(map[uint16]held),
	}
}

// Actions returns the actions since the last call, in order. The slice is valid until the next
// call.
func (m *Machine) Actions() []Action {
	m.actions, m.taken = m.taken[:0], m.actions
	return m.taken
}

func (m *Machine) do(a Action) { m.actions = append(m.actions, a) }

// View returns the view that the node obeys.
func (m *Machine) View() *View { return m.view }

// Members is the event that gossip's list of live nodes may have changed. nil means that the node
// has no gossip. The machine keeps the slice and does not change it.
func (m *Machine) Members(alive []ring.Member) { m.alive = alive }

// lives reports whether gossip calls the node alive.
func (m *Machine) lives(name string) bool {
	return slices.ContainsFunc(m.alive, func(o ring.Member) bool { return o.Name() == name })
}

// isListed reports whether the table has the node.
func (m *Machine) isListed(name string) bool {
	return slices.ContainsFunc(m.view.Table.Nodes, func(o ring.Member) bool { return o.Name() == name })
}

// Install is the event that a table arrived. A table that is not newer than the present one is
// ignored.
func (m *Machine) Install(now time.Duration, t *ring.Table) {
	m.mustBe(idle)
	if t == nil || t.Epoch <= m.view.Epoch() {
		return
	}
	m.old, m.view = m.view, m.view.Next(t, m.cfg.ID, m.cfg.Boot)
	if m.cfg.Broken.ServeBeforeTake {
		m.view = m.view.WithGained()
	}
	m.do(Obey{m.view})
	if m.cfg.Broken.CopyEarly {
		m.do(Settle{m.view})
	}
	m.barrier(now, installing)
}

// Forget is the event that what this node serves may be out of date and nobody is left who knows:
// all of it begins anew, as with the first table.
func (m *Machine) Forget(now time.Duration) {
	m.mustBe(idle)
	if m.view.Table == nil {
		return
	}
	m.old, m.view = None, None.Next(m.view.Table, m.cfg.ID, m.cfg.Boot)
	m.do(Obey{m.view})
	m.barrier(now, installing)
}

// barrier asks for BarrierPassed, once no loop executes under an older view any more.
func (m *Machine) barrier(now time.Duration, during step) {
	m.pending = during
	if m.cfg.Broken.SkipBarrier {
		m.BarrierPassed(now, ring.PartitionSet{})
		return
	}
	m.do(Barrier{Holds: during == installing && (m.foreign() || m.view.Table.Level < ring.HoldLevel)})
}

// BarrierPassed is the answer to Barrier. held has the partitions that the view does not serve and
// that somebody holds; Released follows for each of them.
func (m *Machine) BarrierPassed(now time.Duration, held ring.PartitionSet) {
	if m.pending == takingOver {
		m.pending = idle
		m.serveClaimed()
		return
	}
	m.mustBe(installing)
	m.keepHeld(held)
	if m.foreign() { // there is nobody to hand anything to
		m.pending = idle
		m.installed(now)
		return
	}
	m.pending = handing
	m.do(HandOver{m.old.without(&m.view.Held), m.view, m.wasAway()})
}

// HandedTo is the answer to HandOver. heirs are the names of the new owners that get the rest of
// what they were fed. If there are any, a hand-over has begun: the node calls Flushed for each heir
// that has everything, and Finish ends it. id names the hand-over; it is 0 without heirs.
func (m *Machine) HandedTo(now time.Duration, heirs []string) (id uint64) {
	during := m.pending
	if during != releasing {
		m.mustBe(handing)
	}
	m.pending = idle
	if len(heirs) > 0 {
		id = m.beginHandOver(now, heirs)
	}
	if during == releasing {
		m.released(now, id)
	} else {
		m.installed(now)
	}
	return id
}

// installed completes the installation of a table, once no loop executes under the old one and the
// partitions that it served are frozen.
func (m *Machine) installed(now time.Duration) {
	old, next := m.old, m.view
	if m.foreign() {
		m.do(Reset{next.Table.Seed})
	} else if anew := beginsAnew(old, next); len(anew) > 0 {
		m.do(Drop{anew})
	}
	m.do(Review{next, m.wasAway()})
	m.old = nil
	m.do(Settle{next})
	m.do(AskForCopies{next})
	m.do(Refeed{next})
	m.noteDeparted(now, old.Table, next.Table)
	m.beginTakeOver(now)
}

// foreign reports whether the table being installed is another cluster's, or the first one.
func (m *Machine) foreign() bool {
	return m.old.Table == nil || m.old.Table.Seed != m.view.Table.Seed
}

// wasAway reports whether the cluster went on without this node before the table being installed.
func (m *Machine) wasAway() bool { return m.view.WasAway(m.old) && !m.cfg.Broken.IgnoreAbsence }

// beginsAnew returns the partitions that both views own, with different data, and that are not held.
func beginsAnew(old, next *View) (list []uint16) {
	for p := range uint16(ring.Partitions) {
		if old.Owns(p) && next.Owns(p) && !old.Keeps(p, next.Table) && !next.Held.Has(p) {
			list = append(list, p)
		}
	}
	return list
}

// Due returns when the node must call Tick next. ok is false if it need not.
func (m *Machine) Due() (at time.Duration, ok bool) {
	at = never
	if m.takeOver != nil {
		at = min(at, m.takeOver.due())
	}
	for _, h := range m.handOvers {
		at = min(at, h.look)
	}
	for _, w := range m.waiters {
		at = min(at, w.until)
	}
	return at, at != never
}

// never is later than every other time.
const never = time.Duration(1<<63 - 1)

// Tick is the event that the time that Due returned has come.
func (m *Machine) Tick(now time.Duration) {
	m.mustBe(idle)
	m.lookAtHeirs(now)
	m.expireWaiters(now)
	m.askAgain(now)
}

func (m *Machine) mustBe(s step) {
	if m.pending != s {
		panic("BUG: an event in the middle of another one's actions")
	}
}
