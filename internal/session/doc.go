// Package session is what a server remembers of one client connection, and the commands that read
// or change that: HELLO, AUTH, SELECT, CLIENT, MULTI, MONITOR and their like. A node and a proxy
// treat connections alike, so both call this package. It holds no socket and starts no goroutine.
//
// # Terms
//
//   - State: what the server remembers of one client connection.
//   - Server: what all connections of a process share: password, ids, the pause.
//   - Action: what the caller must do besides sending the reply.
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
// Do also answers the commands that internal/about, internal/config and internal/cluster have,
// since those too need neither keys nor other members: a request has one way, whatever it asks for.
//
// Refuse checks what Redis checks before any command runs, in the order of
// Redis: known, number of arguments, authenticated. A caller that has seen
// that all three hold may skip it; its hot path should.
//
// A connection that said CLIENT REPLY OFF or SKIP, is paused, or waits, is Aside, and
// off the fast path by Apart: aside.go says what its caller does besides, waiting.go
// how a command waits. Leave is called when the connection is gone.
//
// CLIENT LIST, KILL, UNBLOCK and PAUSE are checked by Do and concern connections of many
// loops: the caller visits each loop with an Everyone, see everyone.go.
//
// Whether a connection has authenticated may change with each Do (AUTH, HELLO,
// RESET): the caller then gives its parser other limits.
//
// # Invariants and ownership
//
//   - A State belongs to the loop of its connection. No method of State or
//     Server may be called with it from elsewhere.
//   - A Server is shared by all loops. What can change in it is atomic or behind a
//     lock of its own.
//   - args are only read, and nothing keeps a view of them after the return.
//   - dst is appended to and handed back; it is the caller's throughout.
//   - The protocol version of a State changes before the reply that announces
//     it is encoded, so that requests pipelined behind HELLO are answered in the
//     new version.
//   - Every text is that of Redis 7. The conversations in testdata are held with a
//     real redis-server too; where Dunlin differs on purpose, they say why.
package session
