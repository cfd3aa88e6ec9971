// Package proxy is the client side of a Dunlin cluster: stateless, it accepts any Redis client,
// routes each command to the node that owns its key, and gives the replies back in the order of the
// commands.
//
// # Terms
//
// A session is one client connection (the type client; its protocol state is a session.State). A
// worker is all that one event loop owns: its sessions, its pipes and its copy of the route;
// nothing in a worker is shared, so nothing in it is locked. A pipe is one worker's connection to
// one node. A turn is the place of a command's reply among those of its session. A fetch is a large
// reply that a node keeps until its client's turn (fetch.go); a transaction is queued here and is
// one request (transaction.go); a census asks all nodes (census.go, package wide).
//
// Package order decides where and when a request goes, and what becomes of it if its node refuses
// it or is lost. It is a step function without sockets and clocks. The types worker, client and
// pipe are its shell: they read and write, and do what its actions say.
//
//	client ══> client.OnData: parse  ─> local ───────────────────────────────────┐ answered here
//	                                 └> submit ─> order.Machine ─> pipe ═══> node │
//	client <══ conn.Out <─ client.reply <──────────────── pipe.OnData <═══ replies│
//	                 ^ in order of commands <────────────────────────────────────┘
//
// # Pairing replies with commands
//
// A session numbers its commands: head is the oldest one without a delivered reply, tail the next
// number. A pipe keeps a FIFO of the requests it has taken; a node answers in order, so the next
// reply on a pipe belongs to the front of its FIFO. The reply of the session's head goes straight
// into the client's output; one that is early (its session waits for another node first) is copied
// into the session's early buffer until its turn comes.
//
// The turn of a command whose reply the client does not want (CLIENT REPLY) is muted: nothing is
// delivered in it.
//
//	session A  head=7 tail=10   [7: waits for n1] [8: n2, early, stored] [9: n1]
//	pipe n1    A7 B3 A9         next reply on n1 belongs to A7
//	pipe n2    B4               A8 was answered already
//
// # Order
//
// A client's commands on one key are executed in the order in which it sent them: see package
// order. A command over the whole cluster goes out alone: nothing of its session passes it, nor it
// anything.
//
// # Bounds
//
// A session has at most maxInflight commands outstanding and about maxReplyBytes of replies
// foreseen, early and unsent together, if they are as large as the last ones; maxEarly of early
// ones in any case, the parts of unfinished ones included; of large parts those of one command; a
// pipe bounds its requests and their bytes; a held command waits at most Config.Hold, and not at
// all for a node that could not be reached for so long already. Beyond a bound the session is not
// read, or closed where that cannot help. What it has gathered counts in Config.Buffers.
package proxy
