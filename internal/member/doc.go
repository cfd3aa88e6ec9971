// Package member defines what the members of a cluster say to each other on the port for clients:
// the requests between a proxy and a node, and between two nodes. Both sides import the package, so
// each layout, verb and text is defined once. The package has no state.
//
//	proxy                                     node
//	  ── DUNLIN CHALLENGE ─────────────────────▶    only with a secret
//	  ◀── nonce ───────────────────────────────
//	  ── DUNLIN PIPE …, proof ─────────────────▶    the connection is a pipe from here on
//	  ◀── +OK ─────────────────────────────────
//	  ── GET k ────────────────────────────────▶
//	  ◀── the reply, or what stands in its place: a refusal, a ticket, a token
//	  ◀── a push: the reply for which a token stood
//
//	node                                      node
//	  ── DUNLIN PEER …, proof ─────────────────▶
//	  ── DUNLIN TAKE table, STREAM …, TABLE … ─▶
//
// Terms.
//   - verb: the second word of a request between members. The first is always DUNLIN. Each verb has
//     a row in package command, which knows its arity.
//   - greeting: the requests that make a connection a pipe or a peer's.
//   - proof: the HMAC by which a member shows that it knows the cluster's secret.
//   - pipe: the connection over which one loop of a proxy sends its clients' commands of one kind.
//   - refusal: an error by which a node says that it has not executed a command, and what the
//     sender should do instead.
//   - ticket: what a node sends in place of a large reply. The proxy then fetches the reply in
//     pieces.
//   - token: what a node sends in place of a reply that a push brings later.
//   - push: a frame that a node sends between two replies.
//   - listen: a proxy's loop says how many subscribers of a topic it has, and the node pushes what is
//     published, over a pipe of a kind of its own (listen.go).
//   - EACH: a command over all keys, asked of one node about a set of partitions. The answer says
//     which of them it covers.
//   - cursor: a place in the cluster-wide order in which SCAN walks.
//   - prefix: what stands before a request that is about another database than 0, or whose command has waited before
//     (prefix.go).
//
// Invariants.
//   - A request gets exactly one reply, in order. What stands in the place of a reply is an error
//     frame whose code no client command produces.
//   - A token is completed once at most, and never after its connection has ended. The tokens of a
//     connection grow.
//   - A decoder accepts what the encoder beside it produces. It refuses everything else, and never
//     panics.
//   - Requests are built by appending; a parser returns views of its input.
//
// # The wide door
//
// What takes a node long passes beside a pipe's replies, so that a pipe's FIFO never waits for it:
//
//   - "-DUNLINLATER token" stands in the place of the reply to a command that a goroutine finishes.
//   - A push is a frame that begins with '>', on pipes of either protocol version. It answers no
//     request by its place, so it never meets the FIFO. ">3 +later :token reply" completes the
//     command with that token. The reply may be a refusal or a ticket. ">2 +popped :token" in front
//     of a reply is about that (return.go).
//
// A node does both only on pipes whose greeting names ring.LaterLevel or more, and says so when it
// accepts the pipe. Older members take pushes for broken frames. While the table's level is 0 greetings
// name none, so a proxy says its level later on (LEVEL), and the node answers that as it does PIPE.
//
// A pipe that receives a frame which it cannot place closes the connection: nothing behind it could
// be trusted.
package member
