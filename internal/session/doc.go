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
// Do also answers the commands of internal/about, internal/config and internal/cluster, which need
// neither keys nor other members either. So all requests take one way.
//
// Refuse checks what Redis checks before any command runs, in Redis's order: the command is known,
// the number of arguments is right, the connection is authenticated. A caller that has seen that
// all three are so may skip Refuse; its hot path should.
//
// A connection that sent CLIENT REPLY OFF or SKIP, is paused, or waits, is Aside, and Apart keeps
// it off the fast path. aside.go says what its caller does in addition, waiting.go how a command
// waits. The caller calls Leave when the connection has closed.
//
// CLIENT LIST, KILL, UNBLOCK and PAUSE concern connections of many loops. Do checks them; the
// caller then visits each loop with an Everyone, in turns, see everyone.go. One such command of the
// process does so at a time, see Visits.
//
// Each Do may authenticate a connection or end its authentication (AUTH, HELLO, RESET): the caller
// then changes the limits of its parser.
//
// # Invariants and ownership
//
//   - A State belongs to the loop of its connection. Methods of State and Server that use it are
//     called on that loop only.
//   - All loops share one Server. Its changing parts are atomic or have locks of their own.
//   - args are only read, and nothing keeps a view of them after the return.
//   - Functions append to dst and return it; it belongs to the caller throughout.
//   - The protocol version of a State changes before the reply that announces it is encoded, so
//     that requests pipelined behind HELLO are answered in the new version.
//   - Every text is that of Redis 7. Tests also replay the conversations in testdata against a real
//     redis-server; where Dunlin differs on purpose, the conversations say why.
package session
