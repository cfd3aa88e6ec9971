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
// # Values of other types than string
//
// A family of commands on such a type is written like node/data/hashes. The steps of a command:
//
//	run, ok := r.LockElementRun(r.Args[2:], 2)      a command that names elements: in runs (elements.go)
//	t, ok := r.Lock()                               any other command
//	item, found, ok := r.FindOf(t, key, typ)        ReadOf counts a hit or miss; both answer WRONGTYPE
//	v, big := t.Parts(item)                         big: a value with parts; otherwise
//	p := shape.ReadPacked(&kind, item.Value())      a packed value, of at most 1,024 bytes
//
// What a command changes:
//
//   - A packed value is changed in Worker.Pack and stored with Txn.Set, with the expiry of the item. It
//     is logged as a record.
//   - When Pack refuses a change, shape.Rebuild makes the key a value with parts: it copies the packed
//     one, takes memory, and has it back if there is none. Call Txn.BeginUnit before, and log all
//     elements behind it (Table.NoteAll).
//   - Of a value with parts memory is taken first (Table.Reserve), so that a command either finds all
//     that it needs or answers OOM and changes nothing. Worker.Work is scratch memory for that. Then
//     come the changes, NoteSet and NoteDelete for each, and one Work.Note for all of them: the delta
//     that followers apply. Only a value that is fed to somebody pays for it (Parts.Fed).
//   - A value that is empty is deleted (Txn.Delete), and one that is Small is packed again (PackTable,
//     then Txn.Set). Without memory for that it stays as it is.
//
// Strings of a value may be long. ReplyElement and Text pin them. Those that a client uploads for a
// hash or a list (command.ValueSpec) are staged while they arrive: LockElementRun, or UseElements, has
// Args show them, and a value with parts takes them over when it stores them. A goroutine stages
// others by StageElement. So no lock takes as long as a string.
//
// What a command answers: ReplyElement for a string of a value. A whole value that IsLong is
// answered by ReplyPinned: a goroutine makes the reply in slices from a pin, so it is of one
// moment; through a proxy it becomes a ticket. A command of many elements answers what it has in
// each run and ends with Elements.Whole.
//
// A type of value is one Type. Its Form is what the engine is told: Apply and Dump are those of the
// shape (Table.Apply, Table.Dump), which cut strings of any length into pieces for a snapshot.
// CheckRecord is shape.CheckPacked. Level is ring.CollectionsLevel. Expiry of elements is the
// owner's alone: the engine calls Form.Expire for no copy. WATCH, EVICT and MEMORY USAGE need
// nothing.
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
//   - database: that of the command's keys. A client has selected it, a pipe's request names it, and
//     within a transaction or a script SELECT changes it (Request.Select). Request.Lock and KeyLocks
//     lock the partition's section of it; what a command keeps for later includes it.
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
