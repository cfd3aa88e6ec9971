// Package metrics is how a process is watched: Prometheus collectors and the
// admin HTTP server. It is the only user of the Prometheus library.
//
// # Where counters live
//
// Nothing here is counted here. A counter belongs to the loop, shard or pipe
// where its event happens, as a plain integer that only its owner writes.
// A scrape asks the owners and adds up:
//
//	GET /metrics ─> collector ─> node.Stats, proxy.Stats ─> each loop, each shard
//	                          └> Table, Members, gossip counters
//
// So a command costs no shared atomic and no lock for being counted, and a
// scrape costs one visit to each loop (bounded by a second: a loop that does not
// answer makes the scrape incomplete, never hang).
//
// # Names
//
// Prometheus's conventions, all with the prefix dunlin_: base units, _total on
// counters, nothing unbounded in labels (never a key, never a client's address).
// Metrics of a member carry member="its id", because `dunlin local` has several
// members in one process; metrics of the process (loops, Go runtime) do not.
//
// # Paths
//
//	/            a page for people: the cluster, live; readable without JavaScript
//	/metrics     Prometheus
//	/healthz     200 while the event loops run; says nothing about other members
//	/readyz      200 when every member here can serve (see Member.Ready)
//	/api/status  the Status as JSON
//	/api/live    what the page draws, as JSON; both made once for all who ask at one time (shared.go)
//	/api/drain?member=ID&on=true         POST: a node hands over what it has, and stays
//	/api/rebalance?paused=true           POST, to the coordinator: nothing moves that need not
//	/debug/pprof with --pprof only
package metrics
