package order

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

const (
	// SilenceTick is how often Tick must be called after Watch.
	SilenceTick = 50 * time.Millisecond

	retryFirst = time.Millisecond // a partition changes hands within a few
	// RetryEvery is the longest pause before parked requests are tried again.
	RetryEvery = 10 * time.Millisecond
)

// Config is what a Machine is made with.
type Config struct {
	Patience    time.Duration // how long a request is parked before it is given up
	SilentTicks int           // how many ticks a node may send nothing while requests are outstanding
	Room        Room          // of pipes' buffers; nil: without limit
	Broken      *Broken       // nil except in simulations
}

// Machine has everything that one worker of a proxy knows about nodes, routes and parked requests.
type Machine struct {
	patience    time.Duration
	silentTicks int
	room        Room
	broken      *Broken

	placement  ring.Placement
	table      *ring.Table
	tableAt    time.Duration          // when the table was installed
	owner      [ring.Partitions]*Node // by the table, and by -MOVED replies since; nil: no owner, or no table yet
	route      uint64                 // counts the changes of owner
	list       []*Node                // the table's nodes, in its order
	nodes      map[string]*Node       // those by ring.Member.Name
	byAddr     map[string]*Node
	leaving    []*Node // nodes of older tables that still owe answers
	generation uint64  // of the newest connection
	anywhere   uint16  // where the last Keyless request went

	parking    []*Session    // those with parked requests
	untried    int           // how many of them, from the first on, are to be tried again in turns
	returning  []brokenWaits // about which nothing is decided yet
	posted     bool          // the shell was told to call RetryTurn
	redirected []*Session    // those with a -MOVED that FollowMoves is to follow
	retryPause time.Duration // before parked requests are tried again
	armed      bool          // the shell was told to call RetryTimer
	watching   bool          // the shell was told to call Tick
	claim      []byte        // the bytes of the last claim, to make the next one in
	aged       []byte        // those of the last command that has waited, with its age

	actions []Action
	spare   []Action // the batch that the shell had before

	Counts Counts
}

// Counts are what a Machine counts. The shell may read them.
type Counts struct {
	Requests      uint64 // given to pipes
	Refusals      uint64 // replies by which a node said that it is not the owner, or not yet
	Parked        uint64 // requests parked to be sent again
	ParkedTooLong uint64 // of them, those that were given up
	NotParked     uint64 // requests that failed because there was no memory to park them
}

// New returns a Machine without a table: it parks everything.
func New(c Config) *Machine {
	return &Machine{
		patience: c.Patience, silentTicks: c.SilentTicks, room: c.Room, broken: c.Broken, retryPause: retryFirst,
		nodes: make(map[string]*Node), byAddr: make(map[string]*Node),
	}
}

// Install routes by a newer table, and ignores any other. The Machine keeps t, which must not
// change.
func (m *Machine) Install(t *ring.Table, now time.Duration) {
	if m.table != nil && !t.Newer(m.table) {
		return
	}
	m.table, m.tableAt = t, now
	before, known := m.list, m.nodes
	m.list = make([]*Node, len(t.Nodes))
	m.nodes = make(map[string]*Node, len(t.Nodes))
	m.byAddr = make(map[string]*Node, len(t.Nodes))
	for i, node := range t.Nodes {
		n := known[node.Name()]
		if n == nil {
			n = &Node{Member: node, room: m.room}
		}
		n.owned = ring.PartitionSet{}
		m.list[i], m.nodes[node.Name()], m.byAddr[node.Addr] = n, n, n
	}
	for p, i := range t.Owner {
		m.owner[p] = nil
		if int(i) < len(m.list) {
			m.owner[p] = m.list[i]
			m.list[i].owned.Add(uint16(p))
		}
	}
	m.route++
	for _, n := range before {
		if m.nodes[n.Member.Name()] != n {
			n.left = true
			m.leaving = append(m.leaving, n)
			m.watch()
		}
	}
	m.retryParked(now)
}

// SetAlive closes the pipes to nodes that were declared dead. alive has the names of all others.
// Dead nodes keep their partitions until a table says otherwise.
func (m *Machine) SetAlive(alive map[string]bool, now time.Duration) {
	for _, n := range m.leaving {
		if !alive[n.Member.Name()] {
			m.drop(n, now)
		}
	}
	for _, n := range m.list {
		switch name := n.Member.Name(); {
		case !alive[name] && !n.gone:
			m.drop(n, now)
		case alive[name] && n.gone:
			n.gone = false // it was declared dead by mistake, and is back before any table dropped it
		}
	}
}

// drop closes a node's pipes and keeps them closed.
func (m *Machine) drop(n *Node, now time.Duration) {
	n.gone, n.goneAt = true, now
	n.Each(func(p *Pipe) { m.Lost(p, ErrNodeGone, now) })
}

// Tick looks for silent nodes, and drops nodes that have left and owe no answer any more. After
// Watch, call it every SilenceTick until it reports false: then nothing is outstanding. Counting
// ticks rather than reading a clock means that a proxy that was itself held up does not blame its
// nodes.
func (m *Machine) Tick(now time.Duration) (more bool) {
	for _, n := range m.list {
		n.Each(func(p *Pipe) { m.tick(p, now) })
	}
	m.leaving = slices.DeleteFunc(m.leaving, func(n *Node) bool {
		n.Each(func(p *Pipe) { m.tick(p, now) })
		if n.Inflight() > 0 {
			return false
		}
		m.drop(n, now)
		return true
	})
	m.watching = len(m.leaving) > 0
	for _, n := range m.list {
		n.Each(func(p *Pipe) { m.watching = m.watching || p.state == opening || p.Inflight() > 0 })
	}
	return m.watching
}

// watch has the shell call Tick.
func (m *Machine) watch() {
	if !m.watching {
		m.watching = true
		m.act(Action{Kind: Watch})
	}
}

// Stop closes every pipe and forgets all nodes. Parked requests are not answered.
func (m *Machine) Stop(now time.Duration) {
	for _, n := range m.list {
		m.drop(n, now)
	}
	for _, n := range m.leaving {
		m.drop(n, now)
	}
	m.list, m.nodes, m.leaving, m.parking, m.untried, m.returning = nil, nil, nil, nil, 0, nil
}

// Table returns the table in use, nil before the first.
func (m *Machine) Table() *ring.Table { return m.table }

// Level returns the level of the cluster by the table in use.
func (m *Machine) Level() uint8 {
	if m.table == nil {
		return 0
	}
	return m.table.Level
}

// Owner returns the node to which requests for the partition go, nil if none is known.
func (m *Machine) Owner(partition uint16) *Node { return m.owner[partition] }

// OwnerByTable is Owner without what -MOVED replies say: a node that does not have our table yet may send requests
// back to the owner before.
func (m *Machine) OwnerByTable(partition uint16) *Node {
	if m.table == nil {
		return nil
	}
	return m.nodes[m.table.OwnerOf(partition).Name()]
}

// Place has keys lie elsewhere from now on. Nothing is done about requests that are on their way:
// their nodes refuse them if they went astray.
func (m *Machine) Place(p ring.Placement) { m.placement = p }

// Placement returns where keys lie.
func (m *Machine) Placement() ring.Placement { return m.placement }

// Anywhere returns the origin of a Keyless request: of all nodes in turns, each as often as it owns partitions.
func (m *Machine) Anywhere() Origin {
	m.anywhere += 2531 // about 4096 times the golden ratio, and odd: it comes to all of them
	return Origin{Partition: m.anywhere % ring.Partitions, Keyless: true}
}

// Nodes returns the table's nodes, in its order. The caller must not change the slice.
func (m *Machine) Nodes() []*Node { return m.list }

// Parking returns the number of sessions with parked requests.
func (m *Machine) Parking() int { return len(m.parking) }

// routeByTable undoes what a -MOVED reply said about a partition.
func (m *Machine) routeByTable(partition uint16) {
	m.reroute(partition, m.OwnerByTable(partition))
}

// reroute gives a partition to another owner.
func (m *Machine) reroute(partition uint16, to *Node) {
	was := m.owner[partition]
	if was == to || to == nil {
		return
	}
	if was != nil {
		was.owned.Remove(partition)
	}
	to.owned.Add(partition)
	m.owner[partition] = to
	m.route++
}
