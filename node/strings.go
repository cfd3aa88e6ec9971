package node

import (
	"github.com/dunlin-cache/dunlin/node/engine"
)

// maxString is how long a string may grow, Redis's proto-max-bulk-len.
const maxString = 512 << 20

// get: GET key
func get(r *request) {
	t := r.lock()
	defer t.Unlock()
	// Not by readString: handing the item through it took 118 ns instead of 90 for
	// the whole command (BenchmarkOnData/GET/batch64).
	item, found := r.find(t, r.args[1])
	r.worker.count.lookup(found)
	switch {
	case !found:
		r.replyNull()
	case item.Type() != engine.TypeString:
		r.fail(errWrongType)
	case len(item.Value()) < pinFrom:
		r.replyBulk(item.Value())
	default:
		r.replyValue(t, item, 0, len(item.Value()))
	}
}

// strlen: STRLEN key
func strlen(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.readString(t, r.args[1])
	switch {
	case !ok:
	case found:
		r.replyInt(int64(len(item.Value())))
	default:
		r.replyInt(0)
	}
}

// getDel: GETDEL key
func getDel(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.readString(t, r.args[1])
	if !ok {
		return
	}
	r.replyItem(t, item, found)
	if found {
		t.Delete(r.args[1])
	}
}

// getSet: GETSET key value
func getSet(r *request) {
	t := r.lock()
	defer t.Unlock()
	start := len(r.out)
	item, found, ok := r.readString(t, r.args[1])
	if !ok {
		return
	}
	// Answered before the store, which may overwrite the value in place if it is not pinned.
	r.replyItem(t, item, found)
	if err := r.put(t, r.args[1], 2, 0); err != nil {
		r.takeBack(start)
		r.replyStoreError(err)
	}
}

// appendTo: APPEND key value
func appendTo(r *request) {
	key := r.args[1]
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.findString(t, key)
	if !ok {
		return
	}
	suffix, err := r.value(2)
	switch {
	case err != nil:
	case !found:
		err = r.put(t, key, 2, 0)
	default:
		length := len(item.Value())
		if !r.lengthOK(length, len(suffix)) {
			return
		}
		if len(suffix) > 0 {
			r.patch(t, item, true, change{length: length + len(suffix), offset: length, patch: 2})
			return
		}
		suffix = item.Value()
	}
	if err != nil {
		r.replyStoreError(err)
		return
	}
	r.replyInt(int64(len(suffix)))
}

// lengthOK tells whether a string of a+b bytes is allowed; if not, the error is
// already answered.
func (r *request) lengthOK(a, b int) bool {
	// a may be any offset that a client thought of: subtract, do not add.
	if a > maxString || b > maxString-a {
		r.fail(errTooLong)
		return false
	}
	return true
}

// setRange: SETRANGE key offset value
func setRange(r *request) {
	n, ok := r.intArg(2)
	if !ok {
		return
	}
	if n < 0 {
		r.fail(errOffset)
		return
	}
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.findString(t, r.args[1])
	if !ok {
		return
	}
	patch, err := r.value(3)
	if err != nil {
		r.replyStoreError(err)
		return
	}
	length := 0
	if found {
		length = len(item.Value())
	}
	if len(patch) == 0 {
		r.replyInt(int64(length))
		return
	}
	offset := int(n)
	if !r.lengthOK(offset, len(patch)) {
		return
	}
	r.patch(t, item, found, change{length: max(length, offset+len(patch)), offset: offset, patch: 3})
}

// patch changes the key's value and answers its new length.
func (r *request) patch(t engine.Txn, item engine.Item, found bool, c change) {
	value, patched, ok := r.resize(t, item, found, c)
	if !ok {
		return
	}
	if !patched {
		patch, _ := r.value(c.patch)
		copy(value[c.offset:], patch)
	}
	r.replyInt(int64(c.length))
}

// resize makes the key's value as long as it is to become, and returns it to be written to. patched: what was to be written
// is there already. ok is false if the command is answered, or will be executed again.
func (r *request) resize(t engine.Txn, item engine.Item, found bool, c change) (value []byte, patched, ok bool) {
	key, err := r.args[1], error(nil)
	switch patched = r.rewrite.isOf(item, found); {
	case patched:
		err = r.publish(t, item, found)
	case r.wantsRewrite(t, item, found, c):
		r.rewriteLater(t, item, found, c)
		return nil, false, false
	case !found && r.rewrite.failed():
		err = r.rewrite.err // there is no old value whose memory could be used
	default:
		r.rewrite.dropValues() // their memory may be what is needed
		if !found {
			err = t.Set(key, nil, engine.TypeString, 0)
		}
	}
	if err == nil {
		if value, err = t.Resize(key, c.length); err != nil && !found {
			t.Delete(key) // nobody asked for an empty string
		}
	}
	if err != nil {
		r.replyStoreError(err)
	}
	return value, patched, err == nil
}

// getRange: GETRANGE key start end, and SUBSTR
func getRange(r *request) {
	start, ok := r.intArg(2)
	if !ok {
		return
	}
	end, ok := r.intArg(3)
	if !ok {
		return
	}
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.readString(t, r.args[1])
	if !ok {
		return
	}
	if !found {
		r.replyBulk(nil)
		return
	}
	from, to := clampRange(start, end, int64(len(item.Value())))
	r.replyValue(t, item, int(from), int(to))
}

// clampRange turns Redis's inclusive range, where negative positions count from
// the end, into the bounds of a slice of n elements.
func clampRange(start, end, n int64) (from, to int64) {
	if start < 0 && end < 0 && start > end {
		return 0, 0
	}
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	end = min(end, n-1)
	if start > end || n == 0 {
		return 0, 0
	}
	return start, end + 1
}
