// Race runs Dunlin and its peers side by side on one machine, and reports how far Dunlin is from
// its target ratios:
//
//	go run ./bench/race                                    # about ten minutes
//	go run ./bench/race --rounds 1 --work get16,get1-c1    # less
//	go run ./bench/race --full --picture race.svg          # the whole matrix, and a picture
//	go run ./bench/race --curves all                       # what a command costs as a cluster or its load grows
//	go run ./bench/race --types all                        # collections, scripts, tracking, pub/sub (types.go)
//
// # Terms
//
// A peer is what clients see behind one address: one process or several, each
// with a role, node or proxy. A workload is what its clients do: commands, values,
// connections, pipeline. The load generator is this process, by package load, and
// its processor time has the role load. A sample is what one workload measured on
// one peer in one round.
//
//	           round 1                         round 2
//	set1       redis twemproxy+3 dunlin-...    twemproxy+3 dunlin-... redis
//	get1       redis twemproxy+3 dunlin-...    twemproxy+3 dunlin-... redis
//	...
//
// All peers run all the time, with the same keys, and only one is loaded at a time. Peers take
// turns within a workload, and another one begins in each round: so anything that slows the machine
// for a minute affects all alike. A ratio is taken within a round, between neighbours in time; its
// median over the rounds is what counts.
//
// # Fairness
//
// The other peers keep one copy of a key and write no disk, so Dunlin runs with --copies 1.
// Otherwise all have their defaults: one thread for Redis and twemproxy, four for memcached, one
// less than the processors for Dunlin. All are loaded by the same generator with the same sequence
// of keys; memcached's clients speak its text protocol. Operations per second depend on what the
// load generator leaves of the machine. Processor time per operation depends on it much less, and
// is the steadier figure on a shared machine.
//
// The peer relay+1 is a bare relay before one node of Dunlin: what one client without a pipeline
// (get1-c1) waits for there, it waits for behind any proxy.
//
// After the rounds every peer gets an open loop: at half of what it did before, and
// nearer to it, how long do commands wait that arrive at fixed times?
//
// # Curves
//
// A curve changes one thing (nodes, clients, loops, the share of a hot key). It has peers of its
// own, which all run while it is measured. Its points take turns as peers do.
//
// # Invariants
//
//   - Every process that was started is ended, by its own id: by close after
//     success, failure, interrupt or panic, and by the kernel when this process
//     is killed (see process.go).
//   - Everything ends: a run, waiting for a peer, filling it, and the race as a
//     whole have limits.
//   - A reply that is an error, or has a wrong length, ends its run, which then has no
//     figures. Keys that do not exist are reported.
//
// The package imports nothing that it measures: it measures the binary that users run.
package main
