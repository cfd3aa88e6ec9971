package exec

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Handler executes one command: it reads r.args, acts on the engine, and appends exactly one reply,
// or leaves that to a goroutine. What has been checked before stands in doc.go.
type Handler func(r *Request)

// Request is one command while it is executed. A loop has one and uses it for every command, so
// that executing a command allocates nothing.
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

	// Set once for all requests of one input.
	conn *Conn
	Now  int64  // unix milliseconds, by the loop's clock
	Out  []byte // the connection's output; replies are appended

	begun       int      // len(out) when it was last taken from the socket
	sent        int      // bytes of replies of this input handed over before begun
	Pins        []Pinned // the parts of the replies that are not in out
	pinnedBytes int      // their bytes

	// Set for each command.
	Cmd       *command.Command
	Args      [][]byte // views into the input, valid during the command
	Upload    *Upload  // not nil: has the values that are not in args
	Rewrite   *Rewrite // not nil: has the value that the command makes
	Partition uint16   // of the key, for commands of a single key or slot

	// keys and partitions are for commands of several keys, in the order of the arguments: the
	// positions of the keys, and their partitions.
	Keys       []int
	Partitions []uint16

	// part: a proxy asks for a part of the reply and merges it with those of other nodes (EACH).
	Part bool

	Held    engine.Txn // while holding: the lock of a transaction, which its commands do not take
	Holding bool
}

// Lock locks the partition of the command's key. Within a transaction it is locked already.
func (r *Request) Lock() engine.Txn {
	if r.Holding {
		return r.Held
	}
	return r.Engine.Lock(r.Partition, r.Now)
}

// Find looks the key up and counts the access for eviction, unless the client asked not to
// (CLIENT NO-TOUCH).
func (r *Request) Find(t engine.Txn, key []byte) (engine.Item, bool) {
	if r.conn.State.NoTouch {
		return t.Peek(key)
	}
	return t.Find(key)
}

// FindString looks up a string that the command will change. If the key holds another type, ok is
// false and the error is answered.
func (r *Request) FindString(t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	item, found = r.Find(t, key)
	if found && item.Type() != engine.TypeString {
		r.Fail(ErrWrongType)
		return item, true, false
	}
	return item, found, true
}

// ReadString is findString for a command that reads: it counts hits and misses.
func (r *Request) ReadString(t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	item, found, ok = r.FindString(t, key)
	r.Worker.Count.Lookup(found)
	return item, found, ok
}

// Exists reports whether there is such a key, without counting the access.
func Exists(t engine.Txn, key []byte) bool {
	_, found := t.Peek(key)
	return found
}

// ExpireKey sets the expiry of a key that exists, and deletes the key if that time has come. It
// reports false if there is no memory for a first expiry; the error is then answered.
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

// IntArg reads args[i]. If it is no integer, ok is false and the error is answered.
func (r *Request) IntArg(i int) (n int64, ok bool) {
	n, ok = resp.ParseInt(r.Args[i])
	if !ok {
		r.Fail(ErrNotInteger)
	}
	return n, ok
}

// Is reports whether an argument, in any case, is the option word.
func Is(arg []byte, word string) bool { return command.EqualFold(arg, word) }

// CloneArgs copies arguments, for a goroutine.
func CloneArgs(args [][]byte) [][]byte {
	all := make([][]byte, len(args))
	for i, a := range args {
		all[i] = bytes.Clone(a)
	}
	return all
}
