package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dunlin-cache/dunlin/ring"
)

// viewSnapshot is what a scrape reads from a View.
type viewSnapshot struct {
	table           *ring.Table
	members         []ring.Member
	owned, followed int // partitions that this member owns; partitions that have a follower
	gossip          Gossip
}

// ofTable returns f of the table, or 0 without a table.
func (s *viewSnapshot) ofTable(f func(*ring.Table) int) float64 {
	if s.table == nil {
		return 0
	}
	return float64(f(s.table))
}

func newViewCollector(m Member) prometheus.Collector {
	read := func() (*viewSnapshot, error) {
		s := &viewSnapshot{table: m.View.Table(), members: m.View.Members(), gossip: m.Gossip()}
		if s.table == nil {
			return s, nil
		}
		if at := s.table.NodeIndex(m.ID, m.Boot); at >= 0 {
			s.owned = s.table.Counts()[at]
		}
		for _, n := range s.table.FollowCounts() {
			s.followed += n
		}
		return s, nil
	}
	return newCollector(m.label(), read, table[viewSnapshot]{metrics: viewMetrics, labelled: viewLabelled})
}

var viewMetrics = []metric[viewSnapshot]{
	gauge("dunlin_table_epoch",
		"Epoch of the table that this member has; 0 without a table. Must be the same on all members.",
		func(s *viewSnapshot) float64 {
			if s.table == nil {
				return 0
			}
			return float64(s.table.Epoch)
		}),
	gauge("dunlin_partitions_owned", "Partitions that the table gives to this member, of 4096 in all.",
		func(s *viewSnapshot) float64 { return float64(s.owned) }),
	gauge("dunlin_partitions_followed",
		"Partitions that have a follower by the table of this member, of 4096 in all.",
		func(s *viewSnapshot) float64 { return float64(s.followed) }),
	gauge("dunlin_partitions_moving", "Partitions that move to another node, by the table of this member.",
		func(s *viewSnapshot) float64 { return s.ofTable(func(t *ring.Table) int { return len(t.Moves) }) }),
	gauge("dunlin_rebalance_paused", "1 while rebalancing is paused: only unavoidable moves happen.",
		func(s *viewSnapshot) float64 { return oneIf(s.table != nil && s.table.Paused) }),

	gauge("dunlin_gossip_health_score", "0 while this member's probes are answered in time; grows when they are not.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Health) }),
	counter("dunlin_gossip_rejoins_total", "Attempts to join addresses of members not known to be alive.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Rejoins) }),
	counter("dunlin_gossip_rejected_members_total",
		"Messages about members that cannot be in a cluster with this one.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Rejected) }),
	counter("dunlin_gossip_unauthenticated_messages_total",
		"Messages discarded because they belong to another secret or cluster name.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Strangers) }),
	counter("dunlin_table_fetches_total", "Tables read from other members.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Fetches) }),
	counter("dunlin_table_fetch_errors_total", "Tables that could not be read from another member.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.FetchErrors) }),
	counter("dunlin_tables_issued_total", "Tables that this member issued as coordinator.",
		func(s *viewSnapshot) float64 { return float64(s.gossip.Issued) }),
	counter("dunlin_tables_healed_total", "Tables that this member issued to end a split.",
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
