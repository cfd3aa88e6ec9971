package node

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Commands of several keys. Admission has filled r.keys and r.partitions and
// found all of them served here.

// keyLocks walks over the keys of a command and holds the lock of one partition
// at a time: neighbours in one partition, as all keys with one {hash tag} are,
// share it.
type keyLocks struct {
	r      *request
	txn    engine.Txn
	held   uint16
	locked bool
	// touched is how many keys the engine was told of.
	touched int
}

// at locks the partition of the i-th key, if that is not the one held.
func (k *keyLocks) at(i int) (t engine.Txn, key []byte) {
	if i == k.touched {
		k.touch()
	}
	if k.r.holding {
		return k.r.held, k.r.args[k.r.keys[i]]
	}
	p := k.r.partitions[i]
	if !k.locked || k.held != p {
		k.release()
		k.txn = k.r.node.engine.Lock(p, k.r.now)
		k.held, k.locked = p, true
	}
	return k.txn, k.r.args[k.r.keys[i]]
}

// touch tells the engine of the next keys, see lookahead.
func (k *keyLocks) touch() {
	r, probes := k.r, &k.r.worker.ahead.probes
	n := min(len(r.keys)-k.touched, len(probes))
	for i := range n {
		at := k.touched + i
		probes[i] = engine.Probe{Partition: r.partitions[at], Key: r.args[r.keys[at]]}
	}
	k.touched += n
	if n > 1 {
		r.node.engine.Touch(probes[:n])
	}
	clear(probes[:n])
}

func (k *keyLocks) release() {
	if k.locked {
		k.locked = false
		k.txn.Unlock()
	}
}

// maxReply is how large the reply for several keys may become. One large value
// named a million times would otherwise fill the memory of any machine. A single
// value is answered whatever its size.
const maxReply = 64 << 20

// mGet: MGET key...
func mGet(r *request) {
	locks := keyLocks{r: r}
	defer locks.release()
	start, before := len(r.out), r.produced()
	r.out = resp.AppendArray(r.out, len(r.keys))
	for i := range r.keys {
		if !r.room(lineRoom) {
			return
		}
		t, key := locks.at(i)
		item, found := r.find(t, key)
		found = found && item.Type() == engine.TypeString // other types count as missing here
		r.worker.count.lookup(found)
		if found && i > 0 && r.produced()-before+len(item.Value()) > maxReply {
			r.takeBack(start)
			r.fail(errReplyTooLarge)
			return
		}
		r.replyItem(t, item, found)
	}
}

// mSet: MSET key value...
func mSet(r *request) {
	if len(r.args)%2 == 0 {
		r.failArity()
		return
	}
	if r.setPairs() {
		r.replyOK()
	}
}

// mSetNX: MSETNX key value..., in one slot and so atomic
func mSetNX(r *request) {
	if len(r.args)%2 == 0 {
		r.failArity()
		return
	}
	locks := keyLocks{r: r}
	defer locks.release()
	for i := range r.keys {
		if t, key := locks.at(i); exists(t, key) {
			r.replyInt(0)
			return
		}
	}
	if r.setPairsIn(&locks) {
		r.replyInt(1)
	}
}

// mSetEX: MSETEX numkeys key value... [NX | XX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL], in one slot and so atomic
func mSetEX(r *request) {
	n, ok := resp.ParseInt(r.args[1])
	if !ok || n < 1 || n > math.MaxInt32 {
		r.fail(errNumKeys)
		return
	}
	if n > int64(len(r.args)-2)/2 {
		r.fail(errPairs)
		return
	}
	var o setOptions
	if !o.parse(r.args[2+2*n:], mSetEXGrammar) {
		r.fail(errSyntax)
		return
	}
	expireAt := int64(0)
	if o.expire != nil {
		if expireAt, ok = r.deadline(&o); !ok {
			return
		}
	}
	locks := keyLocks{r: r}
	defer locks.release()
	for i := range r.keys {
		t, key := locks.at(i)
		if item, found := t.Peek(key); !o.holds(item, found) {
			r.replyInt(0)
			return
		}
	}
	for i, pos := range r.keys {
		t, key := locks.at(i)
		if err := r.putUntil(t, key, pos+1, o.keepTTL, expireAt); err != nil {
			r.replyStoreError(err)
			return
		}
	}
	r.replyInt(1)
}

func exists(t engine.Txn, key []byte) bool {
	_, found := t.Peek(key)
	return found
}

func (r *request) setPairs() bool {
	locks := keyLocks{r: r}
	defer locks.release()
	return r.setPairsIn(&locks)
}

// setPairsIn stores each key's value, the argument behind it. When memory runs
// out on the way, what was stored stays: Redis would have refused at once, but
// only knows because it looks at its memory before and not during a command.
func (r *request) setPairsIn(locks *keyLocks) bool {
	for i, pos := range r.keys {
		t, key := locks.at(i)
		if err := r.put(t, key, pos+1, 0); err != nil {
			r.replyStoreError(err)
			return false
		}
	}
	return true
}

// del: DEL key..., UNLINK key...
func del(r *request) {
	r.countKeys(func(t engine.Txn, key []byte) bool { return t.Delete(key) })
}

// existing: EXISTS key... A key named twice counts twice.
func existing(r *request) {
	r.countKeys(func(t engine.Txn, key []byte) bool {
		found := exists(t, key)
		r.worker.count.lookup(found)
		return found
	})
}

// touch: TOUCH key...
func touch(r *request) {
	r.countKeys(func(t engine.Txn, key []byte) bool {
		_, found := t.Find(key)
		r.worker.count.lookup(found)
		return found
	})
}

// countKeys answers for how many keys f holds.
func (r *request) countKeys(f func(t engine.Txn, key []byte) bool) {
	locks := keyLocks{r: r}
	defer locks.release()
	n := int64(0)
	for i := range r.keys {
		if f(locks.at(i)) {
			n++
		}
	}
	r.replyInt(n)
}
