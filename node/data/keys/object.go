package keys

import (
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// object looks up the command's key and locks its partition. OBJECT does not count as a use of the
// key. If the key is missing, object answers null and found is false.
func object(r *exec.Request) (item engine.Item, t engine.Txn, found bool) {
	t = r.Lock()
	if item, found = t.Peek(r.Args[2]); !found {
		r.ReplyNull()
	}
	r.Worker.Count.Lookup(found)
	return item, t, found
}

// objectEncoding: OBJECT ENCODING key
func objectEncoding(r *exec.Request) {
	item, t, found := object(r)
	defer t.Unlock()
	if found {
		r.ReplyBulk([]byte(r.Types.Of(item).Encoding(item)))
	}
}

// objectFreq: OBJECT FREQ key. Redis knows the frequency only under an LFU policy. Dunlin counts
// uses under every policy, up to three since eviction last visited the key, but answers as Redis
// does.
func objectFreq(r *exec.Request) {
	item, t, found := object(r)
	defer t.Unlock()
	switch {
	case !found:
	case !r.EvictsByFrequency():
		r.Fail(ErrNoFrequency)
	default:
		r.ReplyInt(int64(item.Uses()))
	}
}

// objectIdleTime: OBJECT IDLETIME key. Dunlin does not know when a key was last used: eviction
// needs less, and a time would cost four bytes a key. The answer is 0, so that no client takes a
// key for idle and deletes it.
func objectIdleTime(r *exec.Request) {
	_, t, found := object(r)
	defer t.Unlock()
	switch {
	case !found:
	case r.EvictsByFrequency():
		r.Fail(ErrNoIdleTime)
	default:
		r.ReplyInt(0)
	}
}

// objectRefCount: OBJECT REFCOUNT key. No two keys share a value.
func objectRefCount(r *exec.Request) {
	_, t, found := object(r)
	defer t.Unlock()
	if found {
		r.ReplyInt(1)
	}
}
