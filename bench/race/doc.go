// Race runs Dunlin and its peers side by side on one machine, and says how far
// Dunlin is from the ratios it is meant to reach:
//
//	go run ./bench/race                                    # everything, about ten minutes
//	go run ./bench/race --rounds 1 --work get16,c1         # less
//	go run ./bench/race --only redis,dunlin-node --requests-scale 0.1
//
// # Terms
//
// A peer is what clients see behind one address: one process or several, each
// with a role, node or proxy. A workload is one call of redis-benchmark, whose
// own processor time is counted under the role load. A sample is what one
// workload measured on one peer in one round.
//
//	           round 1                         round 2
//	set1       redis twemproxy+3 dunlin-...    twemproxy+3 dunlin-... redis
//	get1       redis twemproxy+3 dunlin-...    twemproxy+3 dunlin-... redis
//	...
//
// All peers run all the time, with the same keys, and only one is loaded at a
// time. Peers take turns within a workload, and another one begins in each
// round: what slows the machine for a minute hits all alike. A ratio is taken
// within a round, between neighbours in time; its median over the rounds is what
// counts.
//
// # Fairness
//
// The other peers keep one copy of a key and write no disk, so Dunlin runs with
// --copies 1. Everybody has the defaults otherwise: one thread for Redis and
// twemproxy, the processors less one for Dunlin. Operations a second depend on
// what the load generator leaves of the machine; processor time per operation
// does so much less, and is the steadier figure where the machine is shared.
//
// # Invariants
//
//   - Every process that was started is ended, by its own id: by close after
//     success, failure, interrupt or panic, and by the kernel when this process
//     is killed (see process.go).
//   - Everything ends: a run of redis-benchmark, waiting for a peer, filling it,
//     and the race as a whole have limits.
//   - A reply that is an error is never counted as speed. redis-benchmark gives up
//     at the first one, and keys are looked at again when the race is over.
//
// The package imports nothing of ours: what it measures is the binary that users run.
package main
