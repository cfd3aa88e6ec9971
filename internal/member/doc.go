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
//	  ◀── the reply, or what stands in its place: a refusal, a ticket
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
//   - EACH: a command over all keys, asked of one node about a set of partitions. The answer says
//     which of them it covers.
//   - cursor: a place in the cluster-wide order in which SCAN walks.
//
// Invariants.
//   - A request gets exactly one reply, in order. What stands in the place of a reply is an error
//     frame whose code no client command produces.
//   - A decoder accepts what the encoder beside it produces. It refuses everything else, and never
//     panics.
//   - Requests are built by appending; a parser returns views of its input.
//
// # The wide door
//
// Two more things will pass between members, and belong here. They need a cluster level above 0
// (see package ring), because older members take them for broken frames:
//
//   - "-DUNLINLATER token" in the place of a reply: the command exceeds its budget and is completed
//     by a push. It joins the kinds of Instead, so that a pipe's FIFO never waits for it.
//   - pushes: frames that begin with '>', on every pipe, whatever its protocol version. They answer
//     nothing, so they never meet the FIFO.
//
// A pipe that receives a frame which it cannot place closes the connection: nothing behind it could
// be trusted.
package member
