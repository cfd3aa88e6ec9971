package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dunlin-cache/dunlin/ring"
)

// View is what a member knows about its cluster.
type View interface {
	Table() *ring.Table // immutable; nil: none yet
	Members() []ring.Member
}

// Source describes a member of this process to the admin server.
type Source struct {
	ID   string
	Boot int64
	Addr string // as advertised
	View View
	// Gossip reads the counters of the member's gossip agent.
	Gossip func() Gossip
	// Steer obeys an operator; nil if there is nothing to steer.
	Steer Steer
	// Settled reports whether the member has the cluster's settings; nil: there are none. It
	// is not ready before.
	Settled func() bool
}

// Gossip are the counters of a gossip agent, since its start but for Health. It
// is a type of ours because only ring/gossip's users should depend on it.
type Gossip struct {
	Health                                                             int // 0 is good
	Rejoins, Fetches, FetchErrors, Issued, Healed, Rejected, Strangers uint64
}

// member is a Source with what reads its figures.
type member struct {
	source  Source
	ready   func() bool
	figures func() (Member, detail, error) // what only the member itself knows
	past    history
}

func (a *Admin) add(m *member, c ...prometheus.Collector) {
	a.registry.MustRegister(c...)
	m.past.begin(time.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members = append(a.members, m)
}

// list returns the members at present; the slice is not changed afterwards.
func (a *Admin) list() []*member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.members[:len(a.members):len(a.members)]
}

// Status gathers what /api/status answers.
func (a *Admin) Status() Status {
	s, _ := a.gather(a.list())
	return s
}

func (a *Admin) gather(members []*member) (Status, []detail) {
	s := Status{
		Version: a.opt.Version,
		Cluster: Cluster{Name: a.opt.Cluster, Partitions: ring.Partitions, Peers: []Peer{}},
		Members: []Member{},
	}
	details := make([]detail, len(members))
	for i, m := range members {
		if i == 0 {
			s.Cluster = cluster(a.opt.Cluster, m.source.View)
		}
		f, d, err := m.figures()
		details[i] = d
		if err != nil {
			// Its figures are unknown, but it is here: show it as not ready.
			a.opt.Log.Warn("cannot read figures", "member", m.source.ID, "err", err)
		}
		s.Members = append(s.Members, m.complete(f, err == nil))
	}
	return s, details
}

// isReady reports whether clients should come to the member.
func (m *member) isReady() bool {
	return m.ready() && (m.source.Settled == nil || m.source.Settled())
}

// complete adds to a member's figures what is known without asking it.
func (m *member) complete(f Member, answered bool) Member {
	f.ID, f.Boot, f.Addr = m.source.ID, m.source.Boot, m.source.Addr
	f.Ready = answered && m.isReady()
	f.UptimeSeconds = uptime(f.Boot)
	if answered {
		m.past.recent(time.Now(), &f)
	}
	if t := m.source.View.Table(); t != nil {
		parts := sharesOf(t)
		f.Epoch = t.Epoch
		f.Partitions, f.Follows = parts.of(f.ID, f.Boot)
	}
	return f
}

// viewSnapshot is what a scrape reads from a View.
type viewSnapshot struct {
	table           *ring.Table
	members         []ring.Member
	owned, followed int // partitions that the table gives to this member; that have a follower
	gossip          Gossip
}

// ofTable is 0 without a table.
func (s *viewSnapshot) ofTable(f func(*ring.Table) int) float64 {
	if s.table == nil {
		return 0
	}
	return float64(f(s.table))
}

func newViewCollector(s Source) prometheus.Collector {
	read := func() (*viewSnapshot, error) {
		t := s.View.Table()
		parts := sharesOf(t)
		owned, _ := parts.of(s.ID, s.Boot)
		return &viewSnapshot{t, s.View.Members(), owned, parts.followed(), s.Gossip()}, nil
	}
	return newCollector(memberLabel(s), read, table[viewSnapshot]{metrics: viewMetrics, labelled: viewLabelled})
}

func memberLabel(s Source) prometheus.Labels { return prometheus.Labels{"member": s.ID} }

var viewMetrics = []metric[viewSnapshot]{
	gauge("dunlin_table_epoch", "Epoch of the table that this member has; 0 without one. Must be the same on all members.",
		func(s *viewSnapshot) float64 {
			if s.table == nil {
				return 0
			}
			return float64(s.table.Epoch)
		}),
	gauge("dunlin_partitions_owned", "Partitions that the table gives to this member, of 4096 in all.",
		func(s *viewSnapshot) float64 { return float64(s.owned) }),
	gauge("dunlin_partitions_followed", "Partitions that have a follower by the table of this member, of 4096 in all.",
		func(s *viewSnapshot) float64 { return float64(s.followed) }),
	gauge("dunlin_partitions_moving", "Partitions that are on their way to another node by the table of this member.",
		func(s *viewSnapshot) float64 { return s.ofTable(func(t *ring.Table) int { return len(t.Moves) }) }),
	gauge("dunlin_rebalance_paused", "1 while an operator wants nothing to move that need not.",
		func(s *viewSnapshot) float64 { return oneIf(s.table != nil && s.table.Paused) }),

	gauge("dunlin_gossip_health_score", "0 while this member's own probes are answered in time; grows when they are not.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Health) }),
	counter("dunlin_gossip_rejoins_total", "Attempts to join an address that is not known to be alive.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Rejoins) }),
	counter("dunlin_gossip_rejected_members_total", "Messages about members that cannot be in one cluster with this one.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Rejected) }),
	counter("dunlin_gossip_unauthenticated_messages_total", "Messages thrown away because they are of another secret or another cluster's name.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Strangers) }),
	counter("dunlin_table_fetches_total", "Tables read from other members.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Fetches) }),
	counter("dunlin_table_fetch_errors_total", "Tables that could not be read from another member.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.FetchErrors) }),
	counter("dunlin_tables_issued_total", "Tables that this member issued as coordinator.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Issued) }),
	counter("dunlin_tables_healed_total", "Those among the tables issued that ended a split.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Healed) }),
}

var viewLabelled = []labelled[viewSnapshot]{
	{"dunlin_members", "Alive members by role, as this member's gossip sees them.", prometheus.GaugeValue, "role",
		func(s *viewSnapshot, emit func(string, float64)) {
			counts := map[ring.Role]int{ring.RoleNode: 0, ring.RoleProxy: 0}
			for _, m := range s.members {
				counts[m.Role]++
			}
			for role, n := range counts {
				emit(role.String(), float64(n))
			}
		}},
}
