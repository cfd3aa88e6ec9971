package strings

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// get: GET key
func get(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	// Not by ReadString: handing the item through it took 118 ns instead of 90 for
	// the whole command (BenchmarkOnData/GET/batch64).
	item, found := r.Find(t, r.Args[1])
	r.Worker.Count.Lookup(found)
	switch {
	case !found:
		r.NotifyMiss(r.Args[1])
		r.ReplyNull()
	case item.Type() != engine.TypeString:
		r.Fail(exec.ErrWrongType)
	case len(item.Value()) < exec.PinFrom:
		r.ReplyBulk(item.Value())
	default:
		r.ReplyValue(t, item, 0, len(item.Value()))
	}
}

// strlen: STRLEN key
func strlen(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, r.Args[1])
	switch {
	case !ok:
	case found:
		r.ReplyInt(int64(len(item.Value())))
	default:
		r.ReplyInt(0)
	}
}

// getDel: GETDEL key
func getDel(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, r.Args[1])
	if !ok {
		return
	}
	r.ReplyItem(t, item, found)
	if found {
		t.Delete(r.Args[1])
		r.Notify(keyevent.Generic, "del", r.Args[1])
	}
}

// getSet: GETSET key value
func getSet(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	start := len(r.Out)
	item, found, ok := r.ReadString(t, r.Args[1])
	if !ok {
		return
	}
	// Answered before the store, which may overwrite the value in place if it is not pinned.
	r.ReplyItem(t, item, found)
	if err := r.Put(t, r.Args[1], 2, 0); err != nil {
		r.Undo(start)
		r.ReplyStoreError(err)
		return
	}
	r.Notify(keyevent.String, "set", r.Args[1])
}

// appendTo: APPEND key value
func appendTo(r *exec.Request) {
	key := r.Args[1]
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.FindString(t, key)
	if !ok {
		return
	}
	suffix, err := r.Value(2)
	switch {
	case err != nil:
	case !found:
		err = r.Put(t, key, 2, 0)
	default:
		length := len(item.Value())
		if !r.LengthOK(length, len(suffix)) {
			return
		}
		if len(suffix) > 0 {
			patch(r, t, item, true, "append", exec.Change{Length: length + len(suffix), Offset: length, Patch: 2})
			return
		}
		suffix = item.Value()
	}
	if err != nil {
		r.ReplyStoreError(err)
		return
	}
	r.Notify(keyevent.String, "append", key)
	r.ReplyInt(int64(len(suffix)))
}

// setRange: SETRANGE key offset value
func setRange(r *exec.Request) {
	n, ok := r.IntArg(2)
	if !ok {
		return
	}
	if n < 0 {
		r.Fail(ErrOffset)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.FindString(t, r.Args[1])
	if !ok {
		return
	}
	piece, err := r.Value(3)
	if err != nil {
		r.ReplyStoreError(err)
		return
	}
	length := 0
	if found {
		length = len(item.Value())
	}
	if len(piece) == 0 {
		r.ReplyInt(int64(length))
		return
	}
	offset := int(n)
	if !r.LengthOK(offset, len(piece)) {
		return
	}
	patch(r, t, item, found, "setrange", exec.Change{Length: max(length, offset+len(piece)), Offset: offset, Patch: 3})
}

// getRange: GETRANGE key start end, and SUBSTR
func getRange(r *exec.Request) {
	start, ok := r.IntArg(2)
	if !ok {
		return
	}
	end, ok := r.IntArg(3)
	if !ok {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, r.Args[1])
	if !ok {
		return
	}
	if !found {
		r.ReplyBulk(nil)
		return
	}
	from, to := clampRange(start, end, int64(len(item.Value())))
	r.ReplyValue(t, item, int(from), int(to))
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

// patch changes the key's value, announces the event, and answers the new length.
func patch(r *exec.Request, t engine.Txn, item engine.Item, found bool, event string, c exec.Change) {
	value, patched, ok := r.Resize(t, item, found, c)
	if !ok {
		return
	}
	if !patched {
		patch, _ := r.Value(c.Patch)
		copy(value[c.Offset:], patch)
	}
	r.Notify(keyevent.String, event, r.Args[1])
	r.ReplyInt(int64(c.Length))
}
