// Package office decides which tables a member looks for and adopts, and which tables the
// coordinator issues. The package is a step function: ring/gossip runs it among real members, and
// the simulation runs the same code among simulated ones.
//
//	ring/gossip                                     office.Machine
//	  something has changed, or time has passed ─Begin──▶ notes members, looks for tables
//	                                            ◀─Question─ whom to ask for tables, reports, a sign of life
//	  asks, and waits                           ─Answered─▶ adopts; as coordinator plans, and issues
//	                                            ◀─nil───── the step is over: Wait says until when
//	  runs Actions behind each of the three
//
// Terms.
//   - step: what happens between a Begin and the end of its questions. Steps of a machine follow
//     one another.
//   - coordinator: ring.Coordinator of the alive members. It is in office when it has been elected
//     for officeSettle and has gathered the tables of all other nodes.
//   - unread: a version that a member announces and that our lineage does not contain; with its
//     table, once the table has been fetched.
//   - heirs, reports, level, settings: as in package ring.
//
// Invariants.
//   - A Machine has no goroutine, clock, lock or socket. It learns everything from
//     its Host and from events.
//   - A plan may be based on old facts by the time it is issued. So before it issues a table, the
//     machine checks again that it is still the coordinator, that its process has not stood still
//     since the step began, and that no other member has a table that is news to it: the coordinator
//     before may have stood still too shortly to notice.
//   - A member that has its first table from another one issues nothing for a second (meetWait). The
//     age of members is that of their clocks, so a newcomer may be the oldest, and the coordinator
//     before steps down when it hears of it. Two newcomers that have not met would both issue tables.
//   - While another member holds a table of a level that this member does not speak, the machine
//     issues nothing.
//   - A table names a proposal only if that is still the proposal when the table is adopted.
//   - now never goes back, and begins above 0.
package office
