// Package exec is what the handler of a command sees: its request, the reply that it appends, and
// the ways to deal with values that are too large for a loop.
//
//	node: dispatch ──▶ Request ──▶ Handler (node/data/…) ──▶ engine.Txn
//	                      │ Reply…, Fail          the reply, in Out
//	                      │ Put, Value            an argument, which may be an Upload
//	                      │ ReplyValue            a large value: pinned, and sent from where it lies
//	                      │ Resize, NewRewrite    a large value changed: by a goroutine
//	                      ▼
//	                    Host                      what only the node can do, and what is rare
//
// # Terms
//
//   - handler: the function that executes a command. Dispatch has found the command known, its
//     arguments enough in number, the connection authenticated, and the partitions of all its keys
//     served by this node.
//   - type: what a command must know of a kind of value without knowing the kind (Type).
//   - upload: a request whose large value goes into the engine as it arrives.
//   - pinned: a large value that a reply is sent from, without a copy.
//   - rewrite: a large value that a goroutine makes anew, for APPEND, SETRANGE, SETBIT, BITFIELD,
//     BITOP, COPY, RENAME or RESTORE.
//   - part: a node's part of the reply to a command over all keys, which a proxy merges.
//
// # Rules
//
//   - A handler appends exactly one reply, or leaves that to AnswerLater, Later or CoverLater.
//   - A handler takes a shard's lock once (once a key where a command has many), and never reads
//     the clock: Request.Now is the loop's, once an input.
//   - Request.Args are views into the input. Whatever outlives the command copies them.
//   - A Request, its Worker and its Conn belong to one loop.
//   - A GET makes no interface call and allocates nothing.
package exec
