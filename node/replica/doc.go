// Package replica decides what a node sends to the nodes that keep copies of its partitions, and
// what becomes of the copies that it keeps of theirs. It consists of step functions: an event goes
// in, actions come out. It has no goroutine, no clock, no socket and no storage, so that a
// simulation drives the same code as a node.
//
// # Terms
//
//	owner     the node that serves a partition
//	copy      what a node holds of a partition that another one owns
//	receiver  the node that a stream goes to; its sender is the node that the stream comes from
//	feed      one partition on its way to one receiver: a snapshot, then every change
//	mark      a word in the order of a partition's effects: begin, synced, continue, handed
//	seal      a number that an owner draws when it loses a partition: copies with one seal are equal
//	heir      the next owner of a partition that a table takes from this node
//	refusal   a receiver's word that it has no copy of a partition that it is fed
//	batch     a numbered piece of a stream, kept until the receiver acknowledges it
//	barrier   passed when the receiver has everything that was logged before it was raised
//
// # The machines
//
//	table ─▶ Feeding ─▶ Sender, one a receiver ═══ stream ═══▶ Inbound ─▶ Copies
//	          who is      order of snapshots,       ◀═══         each batch   how far each
//	          fed what    hand-overs, refusals    Refusals       once         copy is
//
//	Feeding   derives from each table who is fed what, and what is handed over to whom
//	Sender    orders the feeds of one receiver and knows which of them have arrived
//	Inbound   accepts each batch of one stream once and in order
//	Refusals  are what one sender is yet to be told that this node does not take
//	Copies    hold the state of every copy that this node keeps
//	Window    holds the bytes of the batches that are not acknowledged
//	Pace      limits the bytes that snapshots take in a second
//
// # How to drive them
//
// Call one event method, then run the actions that it leaves, in their order, before the next event
// of the same machine. Starting or ending a feed in the storage engine and changing the Sender's
// state are one step: the caller holds its lock over both. A machine is not safe for concurrent
// use. Feeding, Sender and Copies return their actions from Actions, which also forgets them; the
// slice is valid until the next event.
//
// Every time is a duration since an arbitrary moment, by a clock that never steps. Wall clocks of
// nodes may differ by hours; they decide nothing here.
//
// # Invariants
//
//   - A receiver applies every batch once and in order, or drops every copy that the stream feeds.
//   - A partition whose changes were lost, in a log that overflowed or with a stream's generation,
//     begins anew with a snapshot. The receiver is told at once that its copy is none.
//   - A partition that is to be handed over is fed until its last mark is acknowledged and no
//     refusal of it is outstanding, or until the receiver has refused it too often.
//   - What is handed over is what was sealed: a hand-over ends when its partition is about to
//     change.
//   - A copy counts as in sync only if its data is of the table's epoch and its owner was heard
//     lately, or if its owner has sealed it lately.
//   - What may add to a copy is shut out before the copy is emptied.
package replica
