// Package broker knows who listens to which channels, and passes on what is published. A node is the
// broker of the channels whose slots it owns; patterns, and the channels of keyspace notifications, are known to
// the brokers of all nodes.
//
//	Publish ─▶ topic ─▶ queue of a Receiver ─ wake ─▶ its loop: Take ─▶ connections
//
// # Terms
//
//   - receiver: who takes messages for many subscribers: one of this node's loops, or one loop of a proxy
//     by the connection over which it listens.
//   - listen: a receiver says how many of its subscribers a topic has. The number replaces the one
//     before, so it may be said twice.
//   - backlog: what was published in a partition since this node gained it, for a few seconds. Receivers
//     that follow the partition here are shown it (backlog.go).
//   - stand-in: counts for a receiver that is expected to follow (standin.go).
//   - mark: what stays of a stand-in when its receiver has come. It says that the owner before has told of it.
//   - following: which partitions are so new here that receivers may still have to follow, and of which of them
//     the owner before has handed over everything (following.go).
//   - missed: what a receiver has not got of a channel that moves on before it has followed (missed.go).
//
// # Invariants
//
//   - A publisher never waits for a receiver. A receiver whose queue is full loses messages, and they are
//     counted.
//   - All receivers get the messages of a channel in one order. A message is queued once for a receiver,
//     however many of its topics match: the receiver itself knows which of its subscribers want it.
//   - Publish returns how many subscribers the message was queued for. Each pattern of a subscriber that
//     matches counts, as in Redis.
//   - The bytes of a message are charged before they are copied, once for all receivers, and returned when
//     the last receiver has released the message.
//
// # Locks
//
// A stripe has the channels whose names hash to it. Its lock is held while a message is queued for all
// receivers, which gives the messages of a channel their order. Patterns have a lock of their own, which
// is not held together with another. Under a stripe's lock those of the receivers are taken; nothing is called under
// those but the wake-up, which must not block. The lock of the stand-ins is taken before those of stripes.
package broker
