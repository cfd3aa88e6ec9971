package node

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// request is one command while it is executed. A worker has one and uses it
// for every command, so that executing allocates nothing.
type request struct {
	node   *Node
	worker *worker

	// Set once for all requests of one input.
	conn   *conn
	view   *ownership.View
	fenced bool
	// careful: not every partition that view serves may be used, because of the
	// fence or a latch of the pipe. One flag, for the fast path.
	careful bool
	now     int64 // unix milliseconds
	// timedFrom is from how many arguments on a command is timed, see timing.go; 0
	// in an input that is sampled.
	timedFrom int
	sampled   bool   // the keys of the input count for HOTKEYS
	out       []byte // the connection's output; replies are appended
	begun     int    // len(out) when it was last taken from the socket
	sent      int    // bytes of replies of this input handed over before begun

	// longEnough: this input has taken its share of the loop's time. The rest of it comes in the next iteration.
	longEnough bool
	unused     int // bytes of the request at hand, if it is to come again

	pins        []pinned // what of the replies is not in out
	pinnedBytes int      // their bytes

	// Set for each command.
	cmd       *command.Command
	args      [][]byte // views into the input, valid during the command
	upload    *upload  // not nil: has the values that are not in args
	rewrite   *rewrite // not nil: has the value that the command makes
	partition uint16   // of the key, for commands of a single key or slot

	held    engine.Txn // while holding: the lock of a transaction, which its commands do not take
	holding bool

	// For commands of several keys, in the order of the arguments: the keys'
	// positions, and their partitions.
	keys       []int
	partitions []uint16
}

// lock locks the partition of the command's key.
func (r *request) lock() engine.Txn {
	if r.holding {
		return r.held
	}
	return r.node.engine.Lock(r.partition, r.now)
}

// reply… append the one reply of the command.

func (r *request) replyOK()                { r.out = append(r.out, "+OK\r\n"...) }
func (r *request) replyInt(n int64)        { r.out = resp.AppendInt(r.out, n) }
func (r *request) replyNull()              { r.out = resp.AppendNull(r.out, r.version()) }
func (r *request) replyStatus(s string)    { r.out = resp.AppendSimple(r.out, s) }
func (r *request) version() resp.Version   { return r.conn.state.Version }
func (r *request) replyBool(yes bool)      { r.replyInt(boolInt(yes)) }
func (r *request) replyStoreError(e error) { r.fail(r.node.engineError(e)) }

func (r *request) replyBulk(b []byte) {
	if r.room(len(b) + lineRoom) {
		r.out = resp.AppendBulk(r.out, b)
	}
}

// replyItem answers a string's value or null.
func (r *request) replyItem(t engine.Txn, item engine.Item, found bool) {
	if found {
		r.replyValue(t, item, 0, len(item.Value()))
		return
	}
	r.replyNull()
}

// fail answers with an error; text begins with its code.
func (r *request) fail(text string) {
	r.countFailure(text)
	r.out = resp.AppendError(r.out, text)
}

// failArity answers a call whose number of arguments only the handler could
// find wrong.
func (r *request) failArity() {
	r.countFailure(codeERR)
	r.out = resp.AppendErrorBytes(r.out, command.AppendWrongArity(nil, r.cmd))
}

// countFailure counts an error reply by its text.
func (r *request) countFailure(text string) {
	id := command.ID(0)
	if r.cmd != nil {
		id = r.cmd.ID
	}
	r.worker.count.fail(id, text)
}

// failQuoting answers an error that ends in an argument of the client, cut to
// what Redis would show.
func (r *request) failQuoting(text string, arg []byte) {
	r.fail(text + string(arg[:min(len(arg), 128)]))
}

// failExpireTime answers an expiry that is zero, negative or beyond the end of time.
func (r *request) failExpireTime() {
	r.fail("ERR invalid expire time in '" + r.cmd.Name + "' command")
}

func boolInt(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// find looks the key up and counts the access for eviction, unless the client
// asked not to (CLIENT NO-TOUCH).
func (r *request) find(t engine.Txn, key []byte) (engine.Item, bool) {
	if r.conn.state.NoTouch {
		return t.Peek(key)
	}
	return t.Find(key)
}

// findString looks a string up for a command that will change it. ok is false
// if the key holds something else; the error is then already answered.
func (r *request) findString(t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	item, found = r.find(t, key)
	if found && item.Type() != engine.TypeString {
		r.fail(errWrongType)
		return item, true, false
	}
	return item, found, true
}

// readString is findString for a command that reads: it counts hits and misses.
func (r *request) readString(t engine.Txn, key []byte) (item engine.Item, found, ok bool) {
	item, found, ok = r.findString(t, key)
	r.worker.count.lookup(found)
	return item, found, ok
}

// intArg reads args[i]; ok is false if it is no integer, and the error is then
// already answered.
func (r *request) intArg(i int) (n int64, ok bool) {
	n, ok = resp.ParseInt(r.args[i])
	if !ok {
		r.fail(errNotInteger)
	}
	return n, ok
}

// is tells whether an argument is the option named by word, which is in upper
// case. The argument may be in any case.
func is(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i, c := range arg {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}
