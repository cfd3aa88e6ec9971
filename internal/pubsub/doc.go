// Package pubsub has what publishing and subscribing need wherever connections are: the frames that
// clients and members exchange, and who on one loop subscribes to what. A node and a proxy treat
// subscribers alike, so both use it. It has no socket and starts no goroutine.
//
// # Terms
//
//   - topic: what one subscribes to: a channel, a pattern or a shard channel. Each Kind has names of
//     its own.
//   - message: what somebody has published on a channel.
//   - frame: a message, or the answer to a subscription, as it passes the wire. A frame of RESP2 differs
//     from the one of RESP3 in its first byte only, so one encoding serves all.
//   - Subscriber: one connection, and the topics that it has asked for.
//   - Board: who on one loop is shown what.
//
// # A subscription's life
//
//	Want ──▶ wanted ──▶ Board.Show ──▶ shown ──▶ Unwant ──▶ Board.Hide ──▶ gone
//
// A subscription is wanted from the moment that its client asks for it, and counts from then on.
// The Board shows messages from Show to Hide. What was counted for a subscriber is shown to it: a
// proxy calls Show before it tells the channel's brokers of the change, keeps what comes ahead of
// the answer until that is given, and calls Hide when the brokers know of the change.
//
// # Invariants
//
//   - A Board and its Subscribers belong to one loop.
//   - Messages are shown in the order of Begin and Join: to a subscriber in that order, and to all of them
//     before what begins next. One turn of Go does a bounded number of steps, however many subscribers there are.
//   - A subscriber is shown a message once for its channel, and once for each of its patterns that
//     match, as in Redis.
package pubsub
