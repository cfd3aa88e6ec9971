// Package exec is what the handler of a command sees: its request, the reply that it appends, and
// the means to handle values that are too large for a loop.
//
//	node: dispatch ──▶ Request ──▶ Handler (node/data/…) ──▶ engine.Txn
//	                      │ Reply…, Fail          the reply, in Out
//	                      │ Put, Value            an argument, which may be an Upload
//	                      │ ReplyValue            a large value: pinned, and sent from where it lies
//	                      │ Resize, NewRewrite    a change to a large value, made by a goroutine
//	                      ▼
//	       Host, Keyspace, Heap                   what only the node can do; GET uses none of it
//
// # Terms
//
//   - handler: the function that executes a command. Before it runs, dispatch has checked that the
//     command exists and has enough arguments, that the connection is authenticated, and that this
//     node serves the partitions of all its keys.
//   - type: what commands may ask of any value without knowing what kind of value it is (Type).
//   - upload: a request whose large value goes into the engine as it arrives.
//   - pinned: said of a large value that cannot change or move while a reply is sent from it.
//   - gathered: said of a reply that several runs of a command, or a goroutine, make before any of it
//     is sent (Gathered).
//   - hold: a transaction keeps its partition for longer than a lock (engine.Hold). Others that want it
//     are refused or wait; a handler learns of that from Lock, and returns.
//   - rewrite: a new large value that a goroutine makes, for APPEND, SETRANGE, SETBIT, BITFIELD,
//     BITOP, COPY, RENAME or RESTORE.
//   - part: one node's part of the reply to a command over all keys. A proxy merges the parts.
//
// # Rules
//
//   - A handler appends exactly one reply, or leaves that to AnswerLater, Later or CoverLater.
//     Behind these, the connection's later commands may be executed before the goroutine has run: so
//     a command that only reads pins what it reads, and one that writes looks again in the end.
//   - A handler locks a shard once, or once for each key if the command has several. Before the lock
//     it changes nothing and replies nothing, since it may have to begin again.
//   - A handler that visits many keys, or many elements that its arguments name, does so by LockKeys or
//     LockElements. They stop it after about 0.2 ms, and it goes on when others had their turn.
//   - A handler never reads the clock: Request.Now is the loop's time, read once for each input.
//   - Request.Args are views into the input. What outlives the command must copy them.
//   - A Request, its Worker and its Conn belong to one loop.
//   - A GET makes no interface call and allocates nothing.
package exec
