package node

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// object looks at the command's key without using it, as all of OBJECT does. If it is missing, that is answered.
func (r *request) object() (item engine.Item, t engine.Txn, found bool) {
	t = r.lock()
	if item, found = t.Peek(r.args[2]); !found {
		r.replyNull()
	}
	r.worker.count.lookup(found)
	return item, t, found
}

const (
	maxEmbedded = 44 // bytes of a string that Redis keeps beside its header
	maxNumber   = 20 // bytes of the longest one that it tries to keep as a number
)

// objectEncoding: OBJECT ENCODING key. All strings are stored alike here. The answer is what Redis would do with such a value;
// what it remembers besides, that one was changed in its place, is not known.
func objectEncoding(r *request) {
	item, t, found := r.object()
	defer t.Unlock()
	if !found {
		return
	}
	value := item.Value()
	_, isNumber := resp.ParseInt(value[:min(len(value), maxNumber+1)])
	switch {
	case isNumber && len(value) <= maxNumber:
		r.replyBulk([]byte("int"))
	case len(value) <= maxEmbedded:
		r.replyBulk([]byte("embstr"))
	default:
		r.replyBulk([]byte("raw"))
	}
}

// objectFreq: OBJECT FREQ key. Redis knows it only under a policy by frequency. Here uses are counted under each, up to three
// since eviction has last looked at the key; but who asks wants to know first what the policy is.
func objectFreq(r *request) {
	item, t, found := r.object()
	defer t.Unlock()
	switch {
	case !found:
	case !r.node.settings.EvictsByFrequency():
		r.fail(errNoFrequency)
	default:
		r.replyInt(int64(item.Uses()))
	}
}

// objectIdleTime: OBJECT IDLETIME key. When a key was last used is not known: eviction needs less, and a time would cost each
// key four bytes. 0, so that nobody takes a key for idle and deletes it.
func objectIdleTime(r *request) {
	_, t, found := r.object()
	defer t.Unlock()
	switch {
	case !found:
	case r.node.settings.EvictsByFrequency():
		r.fail(errNoIdleTime)
	default:
		r.replyInt(0)
	}
}

// objectRefCount: OBJECT REFCOUNT key. No two keys share a value.
func objectRefCount(r *request) {
	_, t, found := r.object()
	defer t.Unlock()
	if found {
		r.replyInt(1)
	}
}
