// Package ownership decides which partitions a node serves, and when. It is a step function: the
// node reports events and runs the actions that follow. Nothing here has a lock, a goroutine, a
// clock or a socket, so test/sim runs this package itself.
//
// # Terms
//
//	table     says which node owns each partition (package ring)
//	view      a table as one node obeys it: serve, wait or refuse, for each partition
//	gained    a partition that this node owns, but that another node may still serve
//	barrier   passed when no loop executes under an older view any more
//	take-over what a node does to serve what it gained: ask all others to obey the table; a
//	          failover is the take-over of what a dead owner had
//	departed  a node that a table dropped, and that may not know that yet
//	hand-over what a node does to let go of what it lost: send the rest to the heirs
//	heir      the new owner of a partition, which was fed it before
//	held      of a partition: a transaction keeps it, even if a table has taken it from the node (hold.go)
//	gate      decides which commands of one pipe must wait, because of what the pipe sent before
//	generation one connection of a pipe; a newer one is acknowledged behind the older ones' end
//	fence     up while a node that stood still does not know whether its table is current
//	quorum    enough other nodes have answered within the last second (--min-members)
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
// Step 3 lasts until everybody has answered, or the next table arrives. It asks every node, not
// just the previous owners, because tables that this node never saw may have had other owners. It
// also asks nodes that are alive but not in the table: a node that leaves serves until it hears of
// the table. It waits for a dead node of the table until the coordinator issues a table without it,
// for a node outside the table while gossip calls it alive, and for a node that was dropped as dead
// until the stall limit. When a node has acknowledged with a newer table, nothing is claimed before
// that table has arrived: it may drop this node, without its new owners ever asking this node.
//
// # What is promised
//
//   - A node serves a partition only if its table says so and every other node that may serve it
//     obeys that table or a newer one, or is fenced.
//   - A node acknowledges a table only when it executes nothing under an older one, and the heirs
//     have everything that it lost, or are dead. It names what it still holds: nobody serves that
//     before it is acknowledged too. It never acknowledges a table of another lineage.
//   - Commands of one pipe on one partition are executed in order, even if some of them are refused
//     and sent again (Gate).
//   - Before a node acknowledges a generation of a pipe, it has stopped executing what came over an
//     older one, for good (Generations).
//   - A node that stood still serves nothing until a node of its table has confirmed that table. If
//     none is left, it has nothing any more of what it served before.
//   - With --min-members, a node that too few others have answered serves nothing before they can have
//     given it up, and then until it has confirmed its table.
package ownership
