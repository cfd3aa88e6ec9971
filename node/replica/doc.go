// Package replica decides what a node sends to the nodes that keep copies of its partitions, and
// what becomes of the copies that it keeps of theirs. It consists of step functions: an event goes
// in, actions come out. It has no goroutine, no clock, no socket and no storage, so test/sim drives
// the same code as a node.
//
// # Terms
//
//	owner     the node that serves a partition
//	copy      what a node holds of a partition that another one owns
//	receiver  the node that a stream goes to; its sender is the node that the stream comes from
//	feed      what one receiver is sent of one partition: a snapshot, then every change
//	mark      a message between a partition's effects: begin, synced, continue, handed
//	seal      a number that an owner draws when it loses a partition: copies with one seal are equal
//	heir      the next owner of a partition that a table takes from this node
//	refusal   a receiver says that it has no copy of a partition that it is fed
//	batch     a numbered piece of a stream, kept until the receiver acknowledges it
//	barrier   is passed when the receiver has everything that was logged before it was raised
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
//	Refusals  collects what this node does not accept from one sender, until the sender is told
//	Copies    decides about every copy that this node keeps
//	Window    holds the bytes of the batches that are not acknowledged
//	Pace      limits the bytes that snapshots take in a second
//	Rest      limits the time that snapshots take while clients have to wait for loops
//
// # How to drive them
//
// The caller calls one event method, then runs the actions that Actions returns, in order, before
// the next event of the same machine. Actions also forgets them; the slice is valid until the next
// event. Changing the Sender's state, and starting or ending the feed in the storage engine, are
// one step: the caller keeps one lock over both. A machine is not safe for concurrent use.
//
// Every time is a duration since an arbitrary moment, by a monotonic clock. The wall clocks of
// nodes may differ by hours; they decide nothing here.
//
// # Invariants
//
//   - A receiver applies every batch once and in order, or drops every copy that the stream feeds.
//   - If changes of a partition are lost, in a log that overflowed or with a stream's generation,
//     its feed begins again with a snapshot. The sender tells the receiver at once that its copy is
//     void.
//   - A sender that ends a feed tells the receiver so, with MarkHanded or with MarkBegin, and says
//     MarkBegin if that may be lost, until it has arrived. So a copy whose feed has ended does not
//     count as in sync because a later table names the same owner and the same receiver.
//   - A sender feeds a partition that it hands over until the receiver has acknowledged the last
//     mark and no refusal of it is outstanding, or until the receiver has refused it too often.
//   - A hand-over sends what was sealed: it ends when its partition is about to change.
//   - A copy counts as in sync only if its data is of the table's epoch and its owner was heard
//     within CopyPatience, or if its owner has sealed it within that time.
//   - A source is shut out of a copy before the copy is emptied. Shutting it out waits for the end of
//     a unit of effects that is being applied, so no copy that is served has a part of a unit.
//   - No receiver is sent what it does not understand. Values of a type, and with them their
//     effects, are made only in a cluster whose level is at least the type's (exec.Type.Level).
//     A receiver that meets an unknown kind or type of effect nevertheless applies nothing of the
//     batch, says what it does not know, and closes the connection: it neither skips the effect,
//     since its copy would lack a change, nor keeps a value that it could not answer for.
package replica
