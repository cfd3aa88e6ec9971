// Package node is the storage node. It answers commands on keys from node/engine, for the
// partitions that the table assigns to it, to Redis clients and to proxies.
//
// # Terms
//
//	worker   what this node keeps on one event loop: counters, connections, buffers
//	conn     one connection: a client's, a proxy's pipe, or another member's
//	request  one command while it is executed: exec.Request is what a handler sees of it.
//	         Each worker has one, and reuses it
//	section  the keys of one partition in one database: what a command locks (engine.Section).
//	         Whether this node serves it depends on the partition alone
//	hold     of a partition, by a transaction that takes longer than a lock (transaction_run.go, hold.go)
//	aside    a client that is paused, waits, or does not want all replies (clients.go)
//	blocked  a command that waits for a key to have a value (blocked.go, woken.go)
//	hand     executes commands outside of any connection, for scripts and gathered commands (hand.go)
//	gathered a command whose keys lie in several slots: it is executed on values that their owners
//	         lend (gather.go, lend.go), or in partitions that they reserve for it (gather_reserve.go,
//	         reserve.go)
//	reserved of a partition: it is held for a command that another node executes (reserve.go)
//	publication  a message of a transaction or a script on a channel that another node has (publication.go)
//	event    a keyspace notification, which a goroutine publishes (events.go)
//	ticket   stands for a large reply until its proxy has fetched it (node/ticket)
//	job      a command that a goroutine works on. A pipe goes on meanwhile (jobs.go, efforts.go)
//	view     the present table as this node obeys it: serve, wait or refuse, for each partition
//	gained   of a partition: the table gives it to this node, which serves it once nobody else
//	         can still do so
//
// # The way of a command
//
//	socket ──▶ conn.OnData ──▶ request.execute ──▶ handler (node/data) ──▶ engine
//	              │ parse, some   │ refuse? (unknown, arity, password)
//	              │ ahead: touch  │ local?  (internal/session answers)
//	              │ their keys    │ ours?   (view: serve │ MOVED │ wait)
//	              ▼               ▼
//	         SetOut: the replies of all requests in the input leave in one write
//
// To add a command on keys, set Built in its row in internal/command and, if it stores arguments,
// Values; write a handler in its package of node/data, and enter it in that package's Family. To
// add a type of values, write a package of node/data whose Family has a Type, and enter it in
// handlers.go. node/exec says what a handler can rely on.
//
// # Who may touch what
//
//   - A conn and a worker belong to their loop. Other goroutines reach them only by Loop.Post and
//     Group.Each.
//   - Node.view is an immutable snapshot behind an atomic pointer. It is loaded once for all requests
//     of one input. So Group.Each, which runs between inputs, is a barrier: after it nobody executes
//     under an older view.
//   - node/ownership decides about views. Its events, and what follows from them, run under
//     Node.tableMu (ownership.go), one event at a time. A loop never takes that lock, because its
//     holder waits for all loops. That is why the fence is an atomic flag beside the view. Lock
//     order: tableMu, then the locks of node/stream, then those of the engine.
//   - node/stream has the goroutines and connections of replication (replication.go). The loop of a
//     stream's connection applies its batches, but a goroutine those that would keep it for too long.
//
// # What is promised
//
//   - No command is executed on a partition that the view does not serve.
//   - Data of an earlier ownership is never served: a partition is dropped between losing it and
//     serving it again (node/ownership).
//   - Commands of one pipe on one partition are executed in their order, even if some of them are
//     refused and come again (ownership.Gate).
//   - A command that a proxy gave up with its pipe is not executed after the node has acknowledged
//     the pipe's next generation (ownership.Generations), unless it has its partition held since
//     before: then nothing else is executed on that partition.
//   - Replies leave in the order of the requests. While a goroutine works for one of them, a
//     client's connection reads nothing more. A pipe goes on: a token takes the place of the
//     reply, and a push brings it.
//   - What goroutines work on changes nothing any more once its connection has ended, except for
//     settings, the rest of a transaction, and what a gathered command is about to store. The pipe's
//     next generation waits for these, but not for what holds its partition.
//   - A command that is executed in slices ends with its connection as long as it has changed nothing
//     (exec.Gatherer). One that has begun to change a value is executed to its end.
//   - Few goroutines compute at a time, and they take turns between connections, and behind a pipe
//     between partitions (node/crew). While loops are strained, those that read for KEYS, DUMP,
//     BITCOUNT, a long reply or a SORT of one value take a tenth of the time (exec.Step), unless a
//     write waits for its turn. So do those that compute for gathered commands on long values, one
//     at a time (gather_long.go).
package node
