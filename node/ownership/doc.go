// Package ownership decides which partitions a node serves, and when. It is a step function: the
// node reports events and does what follows from them. Nothing here has a lock, a goroutine, a
// clock or a socket, so test/sim runs this package itself.
//
// # Terms
//
//	table     says which node owns each partition (package ring)
//	view      a table as one node obeys it: serve, wait or refuse, for each partition
//	gained    a partition that this node owns, but that another node may still serve
//	barrier   passed when no loop executes under an older view any more
//	take-over what a node does to serve what it gained: ask all others to obey the table
//	departed  a node that a table dropped, and that may not know that yet
//	hand-over what a node does to let go of what it lost: send the rest to the heirs
//	heir      the new owner of a partition, which was fed it before
//	gate      what one pipe may not be served yet, because of what it sent before
//	generation one connection of a pipe; a newer one is acknowledged behind the older ones' end
//	fence     up while a node that stood still does not know whether its table is current
//
// # How a table is obeyed
//
// A new table changes what a node serves in three steps. At no time do two nodes serve a partition,
// and data of an earlier ownership is never seen.
//
//	Install ──▶ Obey, Barrier         1  the view waits with what is gained and refuses what is lost
//	               │                     ── no loop executes under the old view any more ──
//	BarrierPassed ─┴▶ HandOver        2  heirs get the rest; the engine drops what is old
//	HandedTo ──▶ Drop, Review, …
//	         ──▶ Ask, Ask, …          3  every other node obeys the table: it has passed its own
//	                │                    barrier, and this node has all that it inherits
//	Acknowledged ───┴▶ Claim             ── nobody else serves what is gained ──
//	Claimed ──▶ Barrier ──▶ Obey         the view serves what was gained
//
// Step 3 goes on until everybody has answered, or the next table comes. It asks every node, not
// just the previous owners: that covers owners of tables that this node never saw. It asks nodes
// that are alive but not in the table: those that leave serve until they hear of it. A node of the
// table that died is awaited until the coordinator issues a table without it, a node outside the
// table while gossip calls it alive, and one that was dropped as dead until the stall limit.
//
// # What is promised
//
//   - A node serves a partition only if its table says so and every other node that may serve it
//     obeys that table or a newer one, or is fenced.
//   - A node acknowledges a table only when it executes nothing under an older one, and the heirs
//     have everything that it lost, or are dead. It never acknowledges a table of another lineage.
//   - Commands of one pipe on one partition are executed in their order, also when some of them are
//     refused and come again (Gate).
//   - Before a node acknowledges a generation of a pipe, nothing that came over an older one is
//     executed any more, or ever will be (Generations).
//   - A node that stood still serves nothing until another member has confirmed its table.
package ownership
