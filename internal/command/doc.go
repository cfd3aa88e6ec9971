// Package command is the table of commands: one row for each, with its number
// of arguments, where its keys are, what it may do, who executes it in a
// cluster, and how the answers of several nodes become one. Proxy and node
// read the same rows; nothing else in the project knows a command's properties
// by its name.
//
//	args ──Lookup──> row ──Sub──> row of the subcommand
//	                  │
//	                  ├─ ArityOK, Flags          may this call run at all?
//	                  ├─ Route, Merge            where, and what comes back?
//	                  └─ FirstKey, AppendKeys    for which slot?
//
// Terms:
//
//   - row: a Command. Subcommands have rows of their own, below their
//     container's, and IDs of their own; their names are written "client|id".
//   - built: Dunlin executes it. The table also holds the commands that it does
//     not (yet) know how to execute, so that a row is complete and compared with
//     a real server before its command is written. To clients they are unknown
//     commands.
//   - key spec: a rule that finds keys among arguments, as Redis defines it.
//   - idempotent: may be sent again when its reply was lost.
//   - internal: spoken between proxies and nodes; unknown to clients.
//
// Invariants: rows never change after start and are shared by all loops
// without locks. Every position that FirstKey and AppendKeys give lies within
// the arguments they were given. Lookup, Sub, FirstKey and IdempotentCall
// allocate nothing.
//
// The rows' properties are those of Redis 7, compared with a running server by
// a test, and of later versions where they extend them.
package command
