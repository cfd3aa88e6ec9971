// Package office is what a member decides about tables: which it looks for and adopts, and which
// the coordinator issues. It is a step function: package ring/gossip and the simulation run the
// same code, with real and with simulated members around it.
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
//   - unread: a version that somebody announces and that our lineage does not know, with its table
//     once that was fetched.
//   - heirs, reports, level, settings: as in package ring.
//
// Invariants.
//   - A Machine has no goroutine, clock, lock or socket. All that it knows of the world comes from
//     the Host and by events.
//   - What a plan was made from may be old when it is to be issued: before that, the machine looks
//     once more whether it is still the coordinator and has not stood still since the step began.
//   - now never goes back, and begins above 0.
package office
