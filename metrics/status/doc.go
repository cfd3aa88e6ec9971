// Package status has what members tell people and scripts about themselves: the figures of one
// process, and the report of a whole cluster.
//
// # Terms
//
//   - Status: what /api/status answers: the cluster as this process sees it, and its own members.
//   - Member: one member with its figures. Peer: a member as gossip and the table describe it.
//   - Local: the members of this process.
//   - Report: the Status of one process with the members of all others, each asked for its own.
//
// # From counters to a report
//
//	node.Stats, proxy.Stats ─▶ Local.Gather ─▶ /api/status ─▶ Status.Report: `dunlin status`, `dunlin top`,
//	View: table, gossip ─────────┘     └─▶ the page                           and the page
//
// # Invariants
//
//   - Processes that are asked for a report do not ask others.
//   - A Snapshot is never older than the call that returned it, and members are visited twenty
//     times a second at most.
//   - Fields of the JSON are only ever added: a newer dunlin reads the JSON of an older one, and an
//     older one reads that of a newer one.
package status
