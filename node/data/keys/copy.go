package keys

import (
	"bytes"
	"context"
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// rename: RENAME key newkey
func rename(r *exec.Request) {
	if move(r, false) {
		r.ReplyOK()
	}
}

// renameNX: RENAMENX key newkey
func renameNX(r *exec.Request) {
	if move(r, true) {
		r.ReplyInt(1)
	}
}

// move gives the key another name, or with ifFree only if no key has that name yet. It reports
// false if it has answered already, or if the command will run again.
func move(r *exec.Request, ifFree bool) bool {
	from, to := r.Args[1], r.Args[2]
	t, ok := r.Lock()
	if !ok {
		return false
	}
	defer t.Unlock()
	item, found := r.Find(t, from)
	switch {
	case !found:
		r.Fail(ErrNoKey)
		return false
	case bytes.Equal(from, to):
		if ifFree {
			r.ReplyInt(0)
		}
		return !ifFree
	case ifFree && exec.Exists(t, to):
		r.ReplyInt(0)
		return false
	}
	replaced := exec.Exists(t, to)
	if v, big := t.Parts(item); big {
		return renameValue(r, t, v, item.ExpireAt(), replaced)
	}
	if !r.Engine.IsLarge(len(to), len(item.Value())) { // it would follow the unit, which deletes the key
		r.BeginUnit(t)
	}
	if !duplicate(r, t, item) {
		return false
	}
	t.Delete(from) // last, so that the value is not lost if there is no memory for the copy
	notifyRenamed(r, replaced)
	return true
}

// copyKey: COPY source destination [DB 0] [REPLACE]
func copyKey(r *exec.Request) {
	replace, ok := copyOptions(r, r.Args[3:])
	if !ok {
		return
	}
	from, to := r.Args[1], r.Args[2]
	if bytes.Equal(from, to) {
		r.Fail(errSameObject)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := r.Find(t, from)
	r.Lookup(found, from)
	if !found || !replace && exec.Exists(t, to) {
		r.ReplyInt(0)
		return
	}
	if v, big := t.Parts(item); big {
		copyValue(r, t, v)
		return
	}
	replaced := exec.Exists(t, to)
	if duplicate(r, t, item) {
		replyCopied(r, to, replaced, nil)
	}
}

// renameValue gives a value with parts the second key. It reports false if it has answered an
// error.
func renameValue(r *exec.Request, t engine.Txn, v engine.Parts, expireAt int64, replaced bool) bool {
	err := t.Rename(v, r.Args[2], expireAt)
	if err != nil {
		r.ReplyStoreError(err)
		return false
	}
	notifyRenamed(r, replaced)
	return true
}

// notifyRenamed announces RENAME. As in Redis, the key is new even if it replaces another one.
func notifyRenamed(r *exec.Request, replaced bool) {
	notifyNew(r, replaced, r.Args[2])
	r.Notify(keyevent.Generic, "rename_from", r.Args[1])
	r.Notify(keyevent.Generic, "rename_to", r.Args[2])
}

// notifyNew announces a key that replaces another one. The engine announces others.
func notifyNew(r *exec.Request, replaced bool, key []byte) {
	if replaced {
		r.Notify(keyevent.New, "new", key)
	}
}

// copyOptions parses the options of COPY. If they are wrong, it answers the error and ok is false.
func copyOptions(r *exec.Request, options [][]byte) (replace, ok bool) {
	for i := 0; i < len(options); i++ {
		switch {
		case exec.Is(options[i], "REPLACE"):
			replace = true
		case exec.Is(options[i], "DB") && i+1 < len(options):
			i++
			if !soleDB(r, options[i]) {
				return false, false
			}
		default:
			r.Fail(exec.ErrSyntax)
			return false, false
		}
	}
	return replace, true
}

// soleDB reports whether the argument is the number of the only database. If not, it answers the
// error.
func soleDB(r *exec.Request, arg []byte) bool {
	n, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		r.Fail(exec.ErrNotInteger)
	case n < math.MinInt32 || n > math.MaxInt32:
		r.Fail(errNotInt32)
	case n != 0:
		r.Fail(errDBIndex)
	}
	return ok && n == 0
}

// duplicate stores the first key's value also under the second key. It reports false if it has
// answered an error, or if a goroutine copies a large value and the command will run again
// (exec.Rewrite).
func duplicate(r *exec.Request, t engine.Txn, item engine.Item) bool {
	to, value, w := r.Args[2], item.Value(), r.Rewrite
	again := r.MayRewrite()
	var err error
	switch {
	case w.IsOf(item, true):
		err = t.SetStaged(&w.Staged, item.Type(), item.ExpireAt())
	case again && len(value) > exec.RewriteFrom && r.Engine.IsLarge(len(to), len(value)):
		duplicateLater(r, t, item)
		return false
	default:
		w.DropValues() // the copy may need their memory
		err = duplicateNow(r, t, item)
	}
	if err != nil {
		r.ReplyStoreError(err)
	}
	return err == nil
}

func duplicateLater(r *exec.Request, t engine.Txn, item engine.Item) {
	w := r.NewRewrite()
	w.Sources = []exec.Source{exec.SourceOf(t, item, true)}
	w.Start(r, func(ctx context.Context) (err error) {
		value := w.Sources[0].Value()
		if w.Staged, err = w.Engine.Stage(w.Args[2], len(value)); err == nil {
			err = w.Write(ctx, value)
		}
		return err
	})
}

func duplicateNow(r *exec.Request, t engine.Txn, item engine.Item) error {
	if pin, large := t.Pin(item); large {
		defer pin.Release() // a pinned value does not move, whatever is evicted for the copy
		return t.Set(r.Args[2], pin.Value(), item.Type(), item.ExpireAt())
	}
	copied := append(r.Worker.Body[:0], item.Value()...)
	defer r.Worker.KeepBody(copied)
	return t.Set(r.Args[2], copied, item.Type(), item.ExpireAt())
}
