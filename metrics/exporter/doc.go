// Package exporter shows a process to Prometheus. It is the only user of the Prometheus library.
//
// # Where counters live
//
// Nothing is counted here. A counter belongs to the loop, shard or pipe where its event happens, as
// a plain integer that only its owner writes. A scrape asks the owners and adds up:
//
//	GET /metrics ─> collector ─> node.Stats, proxy.Stats ─> each loop, each shard
//	                          └> View, Gossip
//
// So a command costs no shared atomic and no lock for being counted. A scrape costs one visit to
// each loop, bounded by a second: a loop that does not answer makes the scrape incomplete, and
// never hangs it.
//
// # Names
//
// Prometheus's conventions, all with the prefix dunlin_: base units, _total on counters, nothing
// unbounded in labels (never a key, never a client's address). Metrics of a member carry
// member="its id", because `dunlin local` has several members in one process; metrics of the
// process (loops, Go runtime) do not.
//
// # Invariants
//
//   - The figures of one scrape of a member are of one snapshot: those that belong together, such
//     as hits and misses, are of one moment.
//   - A member that cannot be read hides no other one.
package exporter
