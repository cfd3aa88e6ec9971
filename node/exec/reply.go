package exec

import (
	"errors"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// LineRoom is how many bytes a reply without a value takes at most.
const LineRoom = 64

// MaxReply limits the reply of a command with several keys, in bytes. Without the limit, a client
// could fill any memory by naming one large value a million times. A single value is answered
// whatever its size.
const MaxReply = 64 << 20

// Room makes room for n more bytes of replies. If there is no memory for them, or the connection is
// closed, it reports false and the connection closes. A write of a transaction gets room all the
// same, for a reply that nobody reads: what has begun is executed to its end. Making room may evict
// values of other partitions, but no item of the locked partition.
func (r *Request) Room(n int) bool {
	if cap(r.Out)-len(r.Out) >= n {
		return true
	}
	if r.Woken {
		r.Out = slices.Grow(r.Out, n) // bounded: it has one run
		return true
	}
	var ok bool
	if r.Scripted {
		ok = r.growApart(n)
	} else {
		r.Out, ok = r.conn.Socket.Grow(r.Out, n)
	}
	if !ok {
		r.conn.Closing = true // the rest of the input is not executed
		if (r.InTransaction || r.Hold != nil) && r.Cmd.Flags&command.Write != 0 {
			r.force(n)
			ok = true
		}
	}
	return ok
}

// force makes room in the Go heap. It takes memory for that as far as there is any, until Finish.
func (r *Request) force(n int) {
	r.Out = slices.Grow(r.Out, n)
	if size := int64(cap(r.Out)); size > r.forced && r.Heap.Charge(size-r.forced) {
		r.forced = size
	}
}

// The methods named Reply… append the command's only reply.

// ReplyOK answers OK.
func (r *Request) ReplyOK() { r.Out = append(r.Out, "+OK\r\n"...) }

// ReplyInt answers an integer.
func (r *Request) ReplyInt(n int64) { r.Out = resp.AppendInt(r.Out, n) }

// ReplyNull answers null, as the connection's protocol version writes it.
func (r *Request) ReplyNull() { r.Out = resp.AppendNull(r.Out, r.Version()) }

// ReplyStatus answers a simple string.
func (r *Request) ReplyStatus(s string) { r.Out = resp.AppendSimple(r.Out, s) }

// ReplyBool answers 1 or 0.
func (r *Request) ReplyBool(yes bool) { r.ReplyInt(BoolInt(yes)) }

// Version returns the connection's protocol version.
func (r *Request) Version() resp.Version { return r.conn.State.Version }

// ReplyBulk answers b, which is copied.
func (r *Request) ReplyBulk(b []byte) {
	if r.Room(len(b) + LineRoom) {
		r.Out = resp.AppendBulk(r.Out, b)
	}
}

// ReplyItem answers a string's value, or null if found is false.
func (r *Request) ReplyItem(t engine.Txn, item engine.Item, found bool) {
	if found {
		r.ReplyValue(t, item, 0, len(item.Value()))
		return
	}
	r.ReplyNull()
}

// Fail answers an error. text begins with the error's code.
func (r *Request) Fail(text string) {
	r.CountFailure(text)
	r.Out = resp.AppendError(r.Out, text)
}

// FailArity answers that the number of arguments is wrong, where only the handler can know that.
func (r *Request) FailArity() {
	r.CountFailure(codeERR)
	r.Out = resp.AppendErrorBytes(r.Out, command.AppendWrongArity(nil, r.Cmd))
}

// CountFailure counts an error reply by its text.
func (r *Request) CountFailure(text string) {
	id := command.ID(0)
	if r.Cmd != nil {
		id = r.Cmd.ID
	}
	r.Worker.Count.Fail(id, text)
}

// FailQuoting answers an error whose text ends with an argument of the client, cut to the length
// that Redis shows.
func (r *Request) FailQuoting(text string, arg []byte) {
	r.Fail(text + string(arg[:min(len(arg), 128)]))
}

// FailExpireTime answers that an expiry is zero, negative or too large.
func (r *Request) FailExpireTime() {
	r.Fail("ERR invalid expire time in '" + r.Cmd.Name + "' command")
}

// ReplyStoreError answers an error with which the engine refused to store a value.
func (r *Request) ReplyStoreError(err error) {
	r.ReplyStoreErrorOf(r.Cmd.GrownKey(r.Args), err)
}

// ReplyStoreErrorOf is ReplyStoreError for a Work, which has no arguments any more but the key.
func (r *Request) ReplyStoreErrorOf(key []byte, err error) {
	switch {
	case errors.Is(err, engine.ErrTooBig):
		r.Fail(TooBig(key))
	case errors.Is(err, engine.ErrNeverFits):
		r.Fail(NeverFits(r.Engine.MaxBytes()))
	case errors.Is(err, engine.ErrMemory):
		r.Fail(ErrOOM)
	case errors.Is(err, engine.ErrKeyTooLong):
		r.Fail(ErrKeyTooLong)
	case errors.Is(err, engine.ErrValueTooLarge):
		r.Fail(ErrTooLong)
	default:
		r.Fail("ERR " + err.Error())
	}
}

// FailUnbuilt answers that there is no memory for a result, with the key at which the command is to store it.
func (r *Request) FailUnbuilt() {
	text := ErrOOM
	if key := r.Cmd.GrownKey(r.Args); key != nil {
		text = Unbuilt(key)
	}
	r.Fail(text)
}

// BoolInt returns 1 for true.
func BoolInt(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
