// Package stream carries what a node's partitions hold to the nodes that keep copies of them, and
// takes in what other nodes send to this one. It is the I/O shell of package replica: replica
// decides what is sent when, what is sent again, and what becomes of a copy; this package has the
// goroutines, the connections and the calls of the engine.
//
// # Terms
//
//	stream      everything that one node sends to another one about copies, over all its connections
//	Sender      feeds one other node, from a goroutine; Senders are those of a node
//	connection  one TCP connection of a stream, as its receiver sees it
//	batch       a numbered piece of a stream: effects, or a piece of one large value
//	generation  a stream that begins anew has a new number; its receiver drops everything that the
//	            sender has fed before
//	Taker       decides at the receiver which effects go into a copy: Copies has one for each source
//
// The other words are those of package replica.
//
// # The way of a change
//
//	commands ─▶ engine's logs ─▶ Sender.round ─▶ replica.Window ─▶ TCP ─▶ Connection.Effects ─▶ engine.Apply
//	 (loops)    one a shard       (goroutine)    kept until        DUNLIN  (the receiver's       asks the Taker
//	                  ▲                          acknowledged      EFFECTS  loop)
//	    Sender.fill ──╯ snapshots, partition by partition
//
// Batches are numbered. The receiver applies each once, in order, and answers how far it is. When a
// connection breaks, the next one goes on from there. What cannot be continued begins anew: a
// partition whose log has overflowed, with a new snapshot; a stream that has lost something, with a
// new generation.
//
// A receiver that was sent a change of a value with parts that it does not have, or of another
// incarnation, names the key in its answer if it has memory for it. The Sender has the value logged
// anew, in chunks, when no snapshot is to be taken (sender_anew.go). Until then, and if the answer
// is lost, the copy lacks the key.
//
// A batch whose kinds and types of effects are not all known here is refused (replica's invariants
// say why that does not happen in a working cluster).
//
// A large value is not logged. When its turn in the log comes, the Sender pins it as it is then and
// sends it in pieces (DUNLIN VALUE). Changes of its shard wait meanwhile, those of other shards do
// not. The receiver stages the pieces and publishes the whole value.
//
// # Locks
//
// Outer locks first. None is held across I/O.
//
//	Receivers.mu  which streams come in
//	receiver.mu   one stream that comes in, while a batch of it is applied. Connections on different
//	              loops may contend for it
//	Copies.mu     the machine of all copies
//	Senders.mu    which senders there are
//	Sender.mu     the machine and the window of one receiver
//	engine        a shard's lock. Sender.woken and source.Admits run under it: neither blocks, and
//	              neither calls the engine
//	source.mu     what one source is yet to be told
//
// # Invariants
//
//   - No command waits for a stream. A slow receiver costs a bounded amount: the engine bounds its
//     logs, replica.Window its batches.
//   - What a machine knows and what the engine logs change together, under the machine's lock.
//   - A value that the Sender pins, or the receiver stages, is released when its stream gives it
//     up.
//   - Every goroutine is started with Config.Go and ends soon after Config.Context.
package stream
