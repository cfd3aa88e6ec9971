package keys

import (
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// object looks at the command's key without using it, as all of OBJECT does. If it is missing, that
// is answered.
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

// objectFreq: OBJECT FREQ key. Redis knows it only under a policy by frequency. Here uses are
// counted under each, up to three since eviction has last looked at the key; but who asks wants to
// know first what the policy is.
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

// objectIdleTime: OBJECT IDLETIME key. When a key was last used is not known: eviction needs less,
// and a time would cost each key four bytes. 0, so that nobody takes a key for idle and deletes it.
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
