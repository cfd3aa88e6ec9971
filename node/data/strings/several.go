package strings

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Commands of several keys. Admission has filled r.keys and r.partitions and
// found all of them served here.

// mGet: MGET key...
func mGet(r *exec.Request) {
	locks := r.LockKeys()
	defer locks.Release()
	start, before := len(r.Out), r.Produced()-int(locks.Sum)
	if locks.First == 0 {
		r.Out = resp.AppendArray(r.Out, len(r.Keys))
	}
	for i := locks.First; i < len(r.Keys); i++ {
		if !r.Room(exec.LineRoom) {
			return
		}
		t, key, ok := locks.At(i)
		if !ok {
			locks.Stop(i, int64(r.Produced()-before))
			return
		}
		item, found := r.Find(t, key)
		if !found {
			r.NotifyMiss(key)
		}
		found = found && item.Type() == engine.TypeString // other types count as missing here
		r.Worker.Count.Lookup(found)
		if found && i > 0 && r.Produced()-before+len(item.Value()) > exec.MaxReply {
			r.Undo(start)
			r.Fail(ErrReplyTooLarge)
			return
		}
		if found && len(item.Value()) < exec.PinFrom {
			locks.Copied(i, len(item.Value()))
		}
		r.ReplyItem(t, item, found)
	}
	locks.Whole()
}

// mSet: MSET key value...
func mSet(r *exec.Request) {
	if len(r.Args)%2 == 0 {
		r.FailArity()
		return
	}
	locks := r.LockKeys()
	defer locks.Release()
	for i := locks.First; i < len(r.Keys); i++ {
		t, key, ok := locks.At(i)
		if !ok {
			locks.Stop(i, 0)
			return
		}
		if !setPair(r, t, key, i) {
			return
		}
		locks.Copied(i, len(r.Args[r.Keys[i]+1]))
	}
	r.ReplyOK()
}

// mSetNX: MSETNX key value..., in one slot and so atomic
func mSetNX(r *exec.Request) {
	if len(r.Args)%2 == 0 {
		r.FailArity()
		return
	}
	locks, n := r.LockKeys(), len(r.Keys)
	defer locks.Release()
	for i := locks.First; i < 2*n; i++ { // looks, and then stores
		t, key, ok := locks.At(i)
		switch {
		case !ok:
			locks.Stop(i, 0)
			return
		case i < n && exec.Exists(t, key):
			r.ReplyInt(0)
			return
		case i < n:
		case !setPair(r, t, key, i-n):
			return
		default:
			locks.Copied(i, len(r.Args[r.Keys[i-n]+1]))
		}
	}
	r.ReplyInt(1)
}

// mSetEX: MSETEX numkeys key value... [NX | XX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL], in one
// slot and so atomic
func mSetEX(r *exec.Request) {
	n, ok := resp.ParseInt(r.Args[1])
	if !ok || n < 1 || n > math.MaxInt32 {
		r.Fail(errNumKeys)
		return
	}
	if n > int64(len(r.Args)-2)/2 {
		r.Fail(errPairs)
		return
	}
	var o setOptions
	if !o.parse(r.Args, int(2+2*n), mSetEXGrammar) {
		r.Fail(exec.ErrSyntax)
		return
	}
	expireAt := int64(0)
	if o.given {
		if expireAt, ok = deadline(r, &o.expiry); !ok {
			return
		}
	}
	locks, keys := r.LockKeys(), len(r.Keys)
	defer locks.Release()
	for i := locks.First; i < 2*keys; i++ { // looks, and then stores
		t, key, ok := locks.At(i)
		if !ok {
			locks.Stop(i, 0)
			return
		}
		if i < keys {
			if !o.condition.holds(exec.Exists(t, key)) {
				r.ReplyInt(0)
				return
			}
		} else if err := putUntil(r, t, key, r.Keys[i-keys]+1, o.keepTTL, expireAt); err != nil {
			r.ReplyStoreError(err)
			return
		} else {
			notifySet(r, key, expireAt)
			locks.Copied(i, len(r.Args[r.Keys[i-keys]+1]))
		}
	}
	r.ReplyInt(1)
}

// setPair stores the value of the i-th key, the argument behind it. When memory runs out on the way,
// what was stored stays: Redis would have refused at once, but only knows because it looks at its
// memory before and not during a command.
func setPair(r *exec.Request, t engine.Txn, key []byte, i int) bool {
	err := r.Put(t, key, r.Keys[i]+1, 0)
	if err != nil {
		r.ReplyStoreError(err)
		return false
	}
	r.Notify(keyevent.String, "set", key)
	return true
}
