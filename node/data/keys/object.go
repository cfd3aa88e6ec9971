package keys

import (
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// withObject has f answer about the item of the command's key. OBJECT does not count as a use of the
// key. If the key is missing, the answer is null.
func withObject(r *exec.Request, f func(t engine.Txn, item engine.Item)) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := t.Peek(r.Args[2])
	r.Worker.Count.Lookup(found)
	if !found {
		r.ReplyNull()
		return
	}
	f(t, item)
}

// objectEncoding: OBJECT ENCODING key
func objectEncoding(r *exec.Request) {
	limits := r.Encodings()
	withObject(r, func(t engine.Txn, item engine.Item) {
		r.ReplyBulk([]byte(r.Types.Of(item).Encoding(t, item, limits)))
	})
}

// objectFreq: OBJECT FREQ key. Redis knows the frequency only under an LFU policy. Dunlin counts
// uses under every policy, up to three since eviction last visited the key, but answers as Redis
// does.
func objectFreq(r *exec.Request) {
	withObject(r, func(_ engine.Txn, item engine.Item) {
		if !r.EvictsByFrequency() {
			r.Fail(ErrNoFrequency)
			return
		}
		r.ReplyInt(int64(item.Uses()))
	})
}

// objectIdleTime: OBJECT IDLETIME key. Dunlin does not know when a key was last used: eviction
// needs less, and a time would cost four bytes a key. The answer is 0, so that no client takes a
// key for idle and deletes it.
func objectIdleTime(r *exec.Request) {
	withObject(r, func(engine.Txn, engine.Item) {
		if r.EvictsByFrequency() {
			r.Fail(ErrNoIdleTime)
			return
		}
		r.ReplyInt(0)
	})
}

// objectRefCount: OBJECT REFCOUNT key. No two keys share a value.
func objectRefCount(r *exec.Request) {
	withObject(r, func(engine.Txn, engine.Item) { r.ReplyInt(1) })
}
