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
//   - ring: the target, a function of the set of node ids alone. Only the coordinator uses it.
//   - table: the truth, with an epoch. A table is immutable once Plan, Heal or DecodeTable has
//     returned it: everybody shares one pointer, nobody copies.
//   - version: (epoch, issuer), a table's name. Two tables of one version are the same table,
//     because a coordinator never issues an epoch twice.
//   - lineage: a table and the versions that it replaced, one after another. A table replaces
//     another only if it names that one as an ancestor. Otherwise the two are foreign to each
//     other, which happens after a split (heal.go).
//   - goal: what the ring asks for: each partition's owner and follower.
//   - settings: a document of names and values for the whole cluster, which the table names.
//
// Invariants of every table, checked by DecodeTable and by the tests of Plan.
//   - Each partition has exactly one owner, which is among Nodes.
//   - A follower is another node than the owner, or NoNode.
//   - Nodes are sorted by id, and each id has one boot.
//   - A partition has at most one move, from its owner to a node that is not its follower.
//   - Since[p] and Joined[i] are between 1 and Epoch, and Gone is at most Epoch. Since[p] is the epoch in which p's present
//     data began: a copy that began in another epoch is dropped, never served.
//
// Since[p] and the owner's data go together: a partition that moves keeps its Since because its
// data move along; a partition that is lost gets a new one.
//
// The owner of a partition feeds its follower and the target of its move. A node that reports its
// copy in sync may become owner or follower in the next table, and no other node does, except for
// a partition that begins anew. So Plan moves a partition in steps, and only the table and the
// reports on it decide: any coordinator continues where another one stopped.
package ring
