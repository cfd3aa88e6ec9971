// Package gossip finds the members of a cluster and agrees with them on one ring.Table. It is the
// only user of memberlist. Package office makes the decisions about tables, the coordinator's
// included. Package gossip is its shell: it asks other members, and spreads tables.
//
//	memberlist ──join, leave, update──> member set ──┐
//	(SWIM, transport)                                │ wake
//	                                                 v
//	join loop ──re-resolve, join──> memberlist    steer loop ──Fetch──> members' data ports
//	                                                 │
//	           coordinator: gather, poll reports, ───┤
//	                        Plan or Heal             │
//	           others: fetch what gossip announces ──┤
//	Adopt, from TAKE ────────────────────────────────┤
//	                                                 v
//	settings loop ──FetchSettings──> members' data ports
//	meta loop ──(epoch, issuer)──> memberlist     table ──> notify loop ──> OnTable, OnMembers
//
// Terms.
//   - alive: not declared dead by memberlist, which takes about 1.5 s after a
//     crash. Of two boots of one id only the newer counts, so that a process that
//     restarts replaces its older self at once.
//   - coordinator: ring.Coordinator of the alive members. It alone issues tables,
//     and when it comes into office it first gathers those of all other nodes.
//   - version, lineage, foreign: as in package ring.
//
// How it spreads. Gossip carries up to 512 bytes about each member: its identity, and the version
// of its table. The coordinator and the other members also send each other this in packets of their
// own (announce.go). A member fetches the table itself (kilobytes) from the data port of a node
// that announces a version which the member's own lineage does not contain.
//
// What each member speaks, and the level of the table that it holds, come with gossip (level.go).
// Members fetch a settings document after they have adopted the table that names it (settings.go).
// ready.go says when a member is ready.
//
// While partitions move, the coordinator polls all nodes for reports of their copies
// (office/reports.go). In a settled cluster it asks nobody.
//
// Rules.
//   - A table is adopted only if it is newer along our lineage (ring.Table.Newer).
//     Foreign ones are remembered for the coordinator, which heals them.
//   - Nobody issues a first table before it has met another node and asked every join
//     address, or the bootstrap wait has passed (office.Search, join.go).
//   - A member that does not speak the level of another one's table issues and confirms nothing:
//     it cannot know what that table says of its partitions.
//   - With MinMembers, no table is issued unless that many nodes answer.
//   - Memberlist alone never heals a network partition longer than 30 s. So each
//     member joins, every 5 s, up to three addresses that it does not know alive.
//
// Goroutines: pulse, steer, settings, join, meta and notify, all started by Start, stopped by
// Close, which waits for them. Lock order: memberlist's own node lock, then Agent.mu, then
// notifier.mu. Memberlist calls our delegate with its lock held, so nothing here calls memberlist
// while holding Agent.mu.
package gossip
