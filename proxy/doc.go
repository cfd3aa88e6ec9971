// Package proxy is the client side of a Dunlin cluster. A proxy keeps no data. It accepts any Redis
// client, routes each command to the node that owns its key, and returns the replies in the order
// of the commands.
//
// # Terms
//
//   - session: one client connection. The type client is the session; its protocol state is a
//     session.State.
//   - worker: everything that one event loop owns, such as its sessions and its pipes. Workers
//     share nothing, so nothing in a worker needs a lock.
//   - pipe: one worker's connection to one node, for one lane.
//   - turn: the place of a command's reply among the replies of its session.
//   - parked: a request that came back undone, or that no open pipe could take. Package order parks
//     it.
//   - fetch: a large reply that a node keeps until its client's turn comes (fetch.go).
//   - deferred: a command that a node answers later. It has left the FIFO of its pipe.
//   - transaction: MULTI to EXEC. The proxy queues the commands and sends them as one request
//     (transaction.go), one for each slot if it may have several (transaction_parts.go).
//   - long: a command that takes several turns of its loop (turns.go): it goes in chunks, or it is a WATCH
//     of many keys (watch.go), EXEC of a long transaction (executing.go), or all its keys must lie in one
//     slot (slotted.go)
//   - chunk: the keys of a long command that are split at once (chunks.go)
//   - topic: a channel, pattern or shard channel to which sessions of a worker subscribe (listening.go)
//   - mover: a session that goes to another proxy when it is told that this one stops (moving.go)
//   - census: a command that asks all nodes (census.go, package wide). WAIT is asked for all
//     clients at once (copies.go).
//
// Package order decides where and when a request is sent, and what happens to it if its node
// refuses it or is lost. Package order is a step function without sockets and clocks. The types
// worker, client and pipe are its shell: they read and write, and carry out its actions.
//
//	client ══> client.OnData: parse  ─> local ───────────────────────────────────┐ answered here
//	                                 └> submit ─> order.Machine ─> pipe ═══> node │
//	client <══ conn.Out <─ client.reply <──────────────── pipe.OnData <═══ replies│
//	                 ^ in order of commands <────────────────────────────────────┘
//
// # Pairing replies with commands
//
// A session numbers its commands: head is the oldest command without a delivered reply, tail is the
// next free number. A pipe keeps a FIFO of the requests that it has accepted. A node answers in
// order, so the next reply on a pipe belongs to the front of that FIFO. The reply to the session's
// head goes straight into the client's output. A reply that is early, because its session waits for
// another node first, is copied into the session's early buffer until its turn comes.
//
// A node answers later what takes it long: a token takes the place of the reply, so that the command
// leaves the FIFO, and a push with the token brings the reply. Package order keeps such commands.
//
// A client can switch replies off (CLIENT REPLY). Then the turn of its command is muted: the proxy
// delivers nothing in that turn.
//
// Pushes go between replies. While a large reply is in the output in part, they wait (client.isCutting).
//
//	session A  head=7 tail=10   [7: waits for n1] [8: n2, early, stored] [9: n1]
//	pipe n1    A7 B3 A9         the next reply on n1 belongs to A7
//	pipe n2    B4               A8 was answered already
//
// A blocking command that names keys of several partitions waits by claims, and pops by an ordinary
// command (order.Claims, claims.go). XREAD and XREADGROUP of streams in several slots have a part for each
// (reads.go). If a client has gone when the reply to its blocking command comes, the proxy returns
// what was popped (returns.go).
//
// # Order
//
// A client's commands on one key are executed in the order in which the client sent them: see
// package order. While a command over the whole cluster is in flight, or one that changes functions, no other
// command of its session is.
//
// # Bounds
//
//   - A session has at most maxInflight commands outstanding, and maxLarge on the large lane.
//   - Its expected, early and unsent replies take about maxReplyBytes together, if they are as
//     large as the last ones. Early replies never take more than maxEarly, counting the gathered
//     parts of unfinished replies. A session gathers the large parts of one command at a time.
//   - A pipe bounds the number of its requests, that of the deferred ones among them, and their bytes.
//   - Of a session's scripts, and transactions with scripts, 16 are on their way.
//   - A parked command waits at most Config.Patience, counted from when its node could last be reached.
//   - Of a command of many keys a loop looks at 1,024 in an iteration. At most four chunks of it are on
//     their way, and beyond maxReplyBytes its reply waits for its client.
//
// At a bound the proxy stops reading the session, or closes it where that cannot help. The bytes
// that a session gathers are charged to Config.Buffers.
package proxy
