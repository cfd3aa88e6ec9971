// Package session answers the commands that are about the connection or the
// server and not about keys: PING, HELLO, AUTH, CLIENT, COMMAND, CONFIG,
// CLUSTER, TIME and their like. A node and a proxy answer them alike, so both
// call this package. It holds no socket and starts no goroutine.
//
// # Terms
//
//   - State: what the server remembers of one client connection.
//   - Server: what all connections of a process share: password, settings, ids.
//   - Action: what the caller must do besides sending the reply.
//   - View: the cluster as the CLUSTER commands show it.
//   - Info: the numbers that INFO shows. Counters are those of them that add up
//     over nodes.
//
// # A request's way
//
// A caller treats each request like this:
//
//	            ┌ command.Lookup ┐
//	request ──▶ │ c (or nil)     │──▶ Refuse ──▶ refused: reply is in dst
//	            └────────────────┘      │
//	                                    ▼
//	                 c.Route == Local: Do ──▶ reply is in dst, obey the Action
//	                 otherwise: execute (node) or forward (proxy)
//
// Refuse checks what Redis checks before any command runs, in the order of
// Redis: known, number of arguments, authenticated. A caller that has seen
// that all three hold may skip it; its hot path should.
//
// A connection that said CLIENT REPLY OFF or SKIP, is paused, or waits, is Aside, and
// off the fast path by Apart: what its caller does beside that stands in aside.go, and
// how a command waits in waiting.go. Leave is called when the connection is gone.
//
// INFO is not answered by Do, because at a proxy its numbers come from the
// nodes: the caller fills an Info and calls AppendInfo. CLIENT LIST and KILL are
// checked by Do, which then returns ActionClientList or ActionClientKill: the
// connections belong to many loops, so the caller visits each loop with a
// ClientFilter, and encodes what it found there.
//
// Whether a connection has authenticated may change with each Do (AUTH, HELLO,
// RESET): the caller then gives its parser other limits.
//
// # Invariants and ownership
//
//   - A State belongs to the loop of its connection. No method of State or
//     Server may be called with it from elsewhere.
//   - A Server is shared by all loops. What can change in it (settings, ids) is
//     atomic or behind a lock that is never held across a hook.
//   - Hooks of ServerOptions are called on the loop of the connection that gave
//     the command and must not block.
//   - args are only read, and nothing keeps a view of them after the return.
//   - dst is appended to and handed back; it is the caller's throughout.
//   - The protocol version of a State changes before the reply that announces
//     it is encoded, so that requests pipelined behind HELLO are answered in the
//     new version.
//   - Every text is that of Redis 7. The conversations in testdata are held with a
//     real redis-server too; where Dunlin differs on purpose, they say why.
package session
