// Package ring decides which node serves which key. It is pure: no I/O, no
// clock, no goroutine; package ring/gossip feeds it and spreads its results.
//
//	key ──CRC16, {tag}──> slot 0..16383 ──/4──> partition 0..4095
//	                                                │
//	ids of the serving nodes ──Target──> ring: who should own each partition
//	                                                │
//	last table + alive members + reports of copies
//	      ──Plan──> Table: who does own it, who keeps a copy, what moves
//
// Terms.
//   - slot: CRC16(key or its {hash tag}) mod 16384, as Redis Cluster defines it.
//   - partition: slot / 4, the unit of ownership.
//   - ring: the target, a function of the set of node ids alone. Nobody but the
//     coordinator looks at it.
//   - table: the truth, with an epoch. Immutable once it has left Plan, Heal or
//     DecodeTable: everybody shares one pointer, nobody copies.
//   - version: (epoch, issuer), a table's name. Two tables of one version are the
//     same table, because a coordinator never issues an epoch twice.
//   - lineage: a table and the versions that it replaced, one after another. A
//     table replaces another only if it names it as an ancestor; otherwise the
//     two are foreign to each other, which happens after a split (heal.go).
//
// Invariants of every table, checked by DecodeTable and by the tests of Plan.
//   - Each partition has exactly one owner, and it is among Nodes.
//   - A follower is another node than the owner, or NoNode.
//   - Nodes are sorted by id, one boot of each.
//   - A partition has at most one move, from its owner to a node that is not its follower.
//   - Since[p] and Joined[i] are between 1 and Epoch. Since[p] is the epoch in
//     which p's present data began: a copy that began at another epoch is dropped,
//     never served.
//
// Since[p] and the owner's copy go together: a partition that moves keeps its Since
// because its data come along; one that is lost gets a new one.
//
// A node feeds, from what it owns, the follower of each partition and the goal of its
// move. Whoever of these reports that its copy is in sync may become owner or
// follower in the next table; nobody else ever does, but of a partition that begins
// anew. Moves are thus steps of Plan, and nothing but the table and the reports on it
// decides: any coordinator goes on where another one ended.
package ring
