package exec

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// Handler executes one command: it reads r.Args, acts on the engine, and appends exactly one reply,
// or leaves that to a goroutine. doc.go lists what dispatch has checked before.
type Handler func(r *Request)

// Request is one command while it is executed. Each loop has one Request and reuses it for every
// command, so that executing a command allocates nothing.
type Request struct {
	// Set once.
	Engine   *engine.Engine
	Worker   *Worker
	Types    *Types
	Host     Host
	Keyspace Keyspace
	Heap     Heap
	// EvictsByFrequency reports whether the eviction policy has one of Redis's LFU names.
	EvictsByFrequency func() bool
	// Encodings returns the limits of Redis's encodings, for OBJECT ENCODING.
	Encodings func() Encodings
	// DumpForValkey says that DUMP writes what Valkey reads where Redis reads something else.
	DumpForValkey bool
	// Level returns the protocol level of the cluster.
	Level func() uint8
	// Databases is how many databases commands can name.
	Databases int
	Notices   // and with it the Database of the command

	// Set once for all requests of one input.
	conn *Conn
	// Placement decides where keys lie. Those of the Closed databases cannot be used now.
	Placement ring.Placement
	Closed    ring.Databases
	Now       int64  // unix milliseconds, by the loop's clock
	Out       []byte // the connection's output; replies are appended

	begun       int      // len(Out) when it last came from the socket
	sent        int      // bytes of this input's replies that the socket got before that
	Pins        []Pinned // the parts of the replies that are not in Out
	pinnedBytes int      // their total length
	forced      int64    // charged to Heap for Out, see force

	// Set for each command.
	Cmd       *command.Command
	Args      [][]byte // views into the input, valid during the command
	Upload    *Upload  // not nil: has the values that are not in Args
	Rewrite   *Rewrite // not nil: has the new value that the command waited for
	Rest      *Rest    // not nil: the command goes on from where it has stopped
	Partition uint16   // of the key, for commands of a single key or slot

	// Waited is how long the command has waited for the ends of others' holds, and for moves.
	Waited time.Duration

	// Keys and Partitions are set for commands of several keys: the positions of the keys in Args,
	// in order, and the partition of each.
	Keys       []int
	Partitions []uint16

	// Listed: the command is a client's, and not in its input any more.
	Listed bool
	// InOne: all keys lie in one partition, so much is known. Otherwise they may.
	InOne bool
	// ArgsTake is how many bytes all arguments have at most; 0: nobody knows.
	ArgsTake int64

	// Part: a proxy asks for a part of the reply, and merges it with the parts of other nodes
	// (DUNLIN EACH).
	Part bool

	// Woken: the command has waited, and is executed under the lock of who has brought what it waits for.
	// It does what it can in one run. If that is not enough for anything, it says so: it is Postponed.
	Woken, Postponed bool
	// Scripted: the command is one of a script, which gets its reply (script.go).
	Scripted bool

	// Actor is who wants no word of what the command changes (CLIENT TRACKING NOLOOP); 0: nobody.
	Actor uint64

	Transaction   engine.Txn // in a transaction: its lock, which its commands do not take
	InTransaction bool
	Hold          *engine.Hold // not nil: the request is of a transaction that holds its partition
}

// Lock locks the partition of the command's key. In a transaction it returns the transaction's
// lock, whose Unlock does nothing. If somebody else holds the partition, ok is false: the host takes
// care of the request, nothing is locked, and the handler returns at once.
func (r *Request) Lock() (t engine.Txn, ok bool) {
	if r.InTransaction {
		return r.Transaction, true
	}
	t = r.Engine.Lock(r.Section(), r.Now)
	if r.Actor != 0 {
		t.As(r.Actor)
	}
	if t.MayBeHeld() {
		return t, r.passes(t)
	}
	return t, true
}

// BeginUnit has what the command changes under the lock of t reach copies as one unit, so that a
// follower that takes over has all of it or nothing. A command that changes more than one record
// calls it before its first change. It does nothing in a cluster whose members may not understand
// units.
func (r *Request) BeginUnit(t engine.Txn) {
	if r.Level() >= ring.EffectsLevel {
		t.BeginUnit()
	}
}

// passes reports whether nobody else holds t's partition. Otherwise it unlocks it.
func (r *Request) passes(t engine.Txn) bool {
	h := t.Holder()
	if h == nil || h == r.Hold {
		return true
	}
	t.Unlock()
	r.Host.Held(h)
	return false
}

// Find looks the key up. The access counts for eviction, unless the client has said CLIENT
// NO-TOUCH.
func (r *Request) Find(t engine.Txn, key []byte) (engine.Item, bool) {
	if r.conn.State.NoTouch {
		return t.Peek(key)
	}
	return t.Find(key)
}

// FindString is FindOf for a string.
func (r *Request) FindString(t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	return r.FindOf(t, key, engine.TypeString)
}

// FindOf looks up a value of one type that the command will change. If the key holds another type,
// FindOf answers the error and ok is false.
func (r *Request) FindOf(t engine.Txn, key []byte, typ engine.Type) (item engine.Item, found, ok bool) {
	item, found = r.Find(t, key)
	if found && item.Type() != typ {
		r.Fail(ErrWrongType)
		return item, true, false
	}
	return item, found, true
}

// ReadString is ReadOf for a string.
func (r *Request) ReadString(t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	return r.ReadOf(t, key, engine.TypeString)
}

// ReadOf is FindOf for a command that reads: it also counts the hit or miss.
func (r *Request) ReadOf(t engine.Txn, key []byte, typ engine.Type) (item engine.Item, found, ok bool) {
	item, found, ok = r.FindOf(t, key, typ)
	r.Lookup(found, key)
	return item, found, ok
}

// Exists reports whether the key exists. The access does not count for eviction.
func Exists(t engine.Txn, key []byte) bool {
	_, found := t.Peek(key)
	return found
}

// ExpireKey has an existing key expire at the given time, in unix milliseconds, and deletes the key
// if that time is past. It answers an error and reports false if there is no memory for a key's
// first expiry.
func (r *Request) ExpireKey(t engine.Txn, key []byte, at int64) bool {
	if at <= r.Now {
		return t.Delete(key)
	}
	if !t.SetExpire(key, at) {
		r.Fail(ErrOOM)
		return false
	}
	return true
}

// IntArg parses Args[i]. If it is not an integer, IntArg answers the error and ok is false.
func (r *Request) IntArg(i int) (n int64, ok bool) {
	n, ok = resp.ParseInt(r.Args[i])
	if !ok {
		r.Fail(ErrNotInteger)
	}
	return n, ok
}

// Is reports whether an argument is the option word, in upper or lower case. word is in upper case.
func Is(arg []byte, word string) bool { return command.EqualFold(arg, word) }

// CloneArgs returns a deep copy of the arguments, for use by a goroutine. Their bytes lie in one
// piece: a hundred thousand arguments are copied in two allocations.
func CloneArgs(args [][]byte) [][]byte {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	all, text := make([][]byte, len(args)), make([]byte, 0, size)
	for i, a := range args {
		if a != nil {
			at := len(text)
			text = append(text, a...)
			all[i] = text[at:len(text):len(text)]
		}
	}
	return all
}
