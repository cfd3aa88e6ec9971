package exec

import (
	"math"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/longdouble"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A blocking command pops like its cousin that does not block. Only if none of its keys has a value does
// it call Await, with the partition still locked, so that no push comes between. When a value comes, the
// host executes the command again from its beginning, under the lock of who has brought the value
// (Request.Woken), or from then on as any other command, if it takes long. Within EXEC nothing waits.

// MaxAwaited is how many keys a blocking command names at most: it stands in a queue at each of them.
const MaxAwaited = 256

// maxAwaitedBytes is how long the arguments of a command that waits can be: it keeps copies.
const maxAwaitedBytes = 64 << 10

// Await is what a command waits for: the wish of an engine.Waiter, or the end of the limit, 0 for none.
type Await struct {
	engine.Wish
	Limit time.Duration
	// Waited is for how long the command has waited already, elsewhere. The host knows when it came, and sets Since.
	Waited time.Duration
	// Again is after how long the command is executed again, whether or not anything has come; 0: never.
	Again time.Duration
	// Args are what is executed in the place of the command's own arguments, and IDs those of them by which the
	// command's sender is to replace its own (member.Settle); nil if the command stays as it is.
	Args [][]byte
	IDs  []byte
}

const (
	errTimeout      = "ERR timeout is not a float or out of range"
	errTimeoutInt   = "ERR timeout is not an integer or out of range"
	errTimeoutRange = "ERR timeout is out of range"
	errTimeoutLow   = "ERR timeout is negative"
	errAwaited      = "ERR a blocking command can name at most 256 keys"
	errAwaitedBytes = "ERR the arguments of a command that waits can have at most 65536 bytes"
)

// TimeoutArg parses Args[i], a number of seconds. If it is none, TimeoutArg answers the error and ok is
// false.
func (r *Request) TimeoutArg(i int) (limit time.Duration, ok bool) {
	f, infinite, ok := longdouble.Parse(r.Args[i])
	if !ok {
		r.Fail(errTimeout)
		return 0, false
	}
	millis := math.Inf(1)
	if !infinite {
		seconds, _ := f.Float64()
		millis = math.Ceil(seconds * 1000)
	} else if r.Args[i][0] == '-' {
		millis = math.Inf(-1)
	}
	switch {
	case millis < 0:
		r.Fail(errTimeoutLow)
	case millis > math.MaxInt64:
		r.Fail(errTimeoutRange)
	case len(r.Keys) > MaxAwaited:
		r.Fail(errAwaited)
	default:
		return time.Duration(min(millis, maxAwait)) * time.Millisecond, true
	}
	return 0, false
}

// ParseMillis parses a limit in milliseconds. problem is the error if it is none.
func ParseMillis(arg []byte) (limit time.Duration, problem string) {
	millis, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		return 0, errTimeoutInt
	case millis < 0:
		return 0, errTimeoutLow
	}
	return time.Duration(min(millis, maxAwait)) * time.Millisecond, ""
}

// maxAwait is the longest limit, in milliseconds: a century, so that sums of times do not overflow.
const maxAwait = 100 * 365 * 24 * 60 * 60 * 1000

// Executing reports whether the command is one of a transaction, in which nothing waits.
func (r *Request) Executing() bool { return r.conn.State.Executing }

// Await has the command, which found nothing under the partition's lock t, wait. Within EXEC it answers
// a null array.
func (r *Request) Await(t engine.Txn, a Await) {
	if r.Executing() {
		r.Out = resp.AppendNullArray(r.Out, r.Version())
		return
	}
	if a.Args == nil {
		a.Args = r.Args
	}
	n := 0
	for _, arg := range a.Args {
		n += len(arg)
	}
	if n > maxAwaitedBytes {
		r.Fail(errAwaitedBytes)
		return
	}
	r.Host.Await(t, a)
}

// AwaitKeys is Await of all keys of the command.
func (r *Request) AwaitKeys(t engine.Txn, typ engine.Type, limit time.Duration) {
	keys := make([][]byte, len(r.Keys))
	for i, place := range r.Keys {
		keys[i] = r.Args[place]
	}
	r.Await(t, Await{Wish: engine.Wish{Type: typ, Keys: keys}, Limit: limit})
}

// Leaves reports whether a command that has waited passes over one of its keys, where a claim has
// its turn: what is there is what the claim was told of. The key for which the command is woken is
// another one.
func (r *Request) Leaves(t engine.Txn, typ engine.Type, group, key []byte) bool {
	return r.Woken && len(r.Keys) > 1 && t.HasTurn(typ, group, key)
}

// Take is called by a command just before it pops from a key what it has answered, in one run: if it is a blocking one,
// a proxy may return that (engine.Txn.Take). The reply begins at Out[start].
func (r *Request) Take(t engine.Txn, key []byte, start int) {
	if r.Cmd.Flags&command.Blocking != 0 && !r.Executing() {
		r.InsertAhead(start, r.Host.Take(t, key))
	}
}

// InsertAhead puts something in front of a reply that begins at Out[start].
func (r *Request) InsertAhead(start int, text []byte) {
	if len(text) == 0 {
		return
	}
	r.Out = slices.Insert(r.Out, start, text...)
	for i := len(r.Pins) - 1; i >= 0 && r.Pins[i].At >= start; i-- {
		r.Pins[i].At += len(text)
	}
}

// Apart is a reply that is made without a connection, to be answered on another loop.
type Apart struct {
	text []byte
	pins []Pinned
}

// BeginApart prepares the request for a command whose reply TakeApart takes. Its output is in the Go heap.
func (r *Request) BeginApart(cn *Conn, now int64) {
	r.conn, r.Now, r.Woken, r.Postponed = cn, now, true, false
	r.Out, r.begun, r.sent = r.Out[:0], 0, 0
}

// TakeApart takes the reply. It is a copy.
func (r *Request) TakeApart() (a Apart) {
	a.text, a.pins = r.Cut(0, 0)
	if cap(r.Out) > MaxBodyKept {
		r.Out = nil
	}
	return a
}

// Empty reports whether there is no reply.
func (a *Apart) Empty() bool { return len(a.text) == 0 }

// Len returns how many bytes the reply has that are copied.
func (a *Apart) Len() int { return len(a.text) }

// IsError reports whether the reply is an error.
func (a *Apart) IsError() bool { return resp.IsError(a.text) }

// Answer moves the reply to the output of the request.
func (a *Apart) Answer(r *Request) {
	at := 0
	for i := range a.pins {
		p := &a.pins[i]
		r.replyText(a.text[at:p.At])
		r.Insert(p.Bytes, p.Pin)
		at, *p = p.At, Pinned{}
	}
	r.replyText(a.text[at:])
	a.pins = nil
}

// End frees what Answer has not used.
func (a *Apart) End() {
	for i := range a.pins {
		a.pins[i].Release()
	}
	a.pins = nil
}
