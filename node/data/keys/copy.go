package keys

import (
	"bytes"
	"context"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
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
	if !moveValue(r, t, item, target{t, 2}) {
		return false
	}
	notifyNew(&r.Notices, replaced, to) // as in Redis, the key is new even if it replaces another one
	r.Notify(keyevent.Generic, "rename_from", from)
	r.Notify(keyevent.Generic, "rename_to", to)
	return true
}

// moveKey: MOVE key database
func moveKey(r *exec.Request) {
	key := r.Args[1]
	database, ok := r.DatabaseArg(2)
	if !ok {
		return
	}
	if database == r.Database {
		r.Fail(errSameObject)
		return
	}
	if !r.HoldsTarget(database, key) {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := r.Find(t, key)
	to := target{t.Select(database), 1}
	if !found || exec.Exists(to.t, key) {
		r.ReplyInt(0)
		return
	}
	if !moveValue(r, t, item, to) {
		return
	}
	r.Notify(keyevent.Generic, "move_from", key)
	n := r.NoticesOf(database)
	n.Notify(keyevent.Generic, "move_to", key)
	r.ReplyInt(1)
}

// target is a key that gets a value: the argument at a place, in t's database. t is of the partition of the command.
type target struct {
	t  engine.Txn
	at int
}

func (to *target) key(r *exec.Request) []byte { return r.Args[to.at] }

// moveValue gives the first key's value to another key, in the place of what that has. It reports false if it has
// answered an error, or if the command will run again.
func moveValue(r *exec.Request, t engine.Txn, item engine.Item, to target) bool {
	if v, big := t.Parts(item); big {
		err := to.t.Rename(v, to.key(r), item.ExpireAt())
		if err != nil {
			r.ReplyStoreError(err)
		}
		return err == nil
	}
	if !r.Engine.IsLarge(len(to.key(r)), len(item.Value())) { // it would follow the unit, which deletes the key
		r.BeginUnit(t)
	}
	if !duplicate(r, t, item, to) {
		return false
	}
	t.Delete(r.Args[1]) // last, so that the value is not lost if there is no memory for the copy
	return true
}

// copyKey: COPY source destination [DB database] [REPLACE]
func copyKey(r *exec.Request) {
	database, replace, ok := CopyOptions(r)
	if !ok {
		return
	}
	from, to := r.Args[1], r.Args[2]
	if database == r.Database && bytes.Equal(from, to) {
		r.Fail(errSameObject)
		return
	}
	if !r.HoldsTarget(database, to) {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := r.Find(t, from)
	r.Lookup(found, from)
	d := t.Select(database)
	if !found || !replace && exec.Exists(d, to) {
		r.ReplyInt(0)
		return
	}
	if v, big := t.Parts(item); big {
		copyValue(r, t, d, v)
		return
	}
	replaced := exec.Exists(d, to)
	if duplicate(r, t, item, target{d, 2}) {
		replyCopied(r, database, to, replaced, nil)
	}
}

// notifyNew announces a key that replaces another one. The engine announces others.
func notifyNew(n *exec.Notices, replaced bool, key []byte) {
	if replaced {
		n.Notify(keyevent.New, "new", key)
	}
}

// CopyOptions parses the options of COPY. If they are wrong, it answers the error and ok is false.
func CopyOptions(r *exec.Request) (database uint8, replace, ok bool) {
	database = r.Database
	for i := 3; i < len(r.Args); i++ {
		switch {
		case exec.Is(r.Args[i], "REPLACE"):
			replace = true
		case exec.Is(r.Args[i], "DB") && i+1 < len(r.Args):
			i++
			if database, ok = r.DatabaseArg(i); !ok {
				return 0, false, false
			}
		default:
			r.Fail(exec.ErrSyntax)
			return 0, false, false
		}
	}
	return database, replace, true
}

// duplicate stores the first key's value also under another key. It reports false if it has
// answered an error, or if a goroutine copies a large value and the command will run again
// (exec.Rewrite).
func duplicate(r *exec.Request, t engine.Txn, item engine.Item, to target) bool {
	value, w := item.Value(), r.Rewrite
	again := r.MayRewrite()
	var err error
	switch {
	case w.IsOf(item, true):
		err = to.t.SetStaged(&w.Staged, item.Type(), item.ExpireAt())
	case again && len(value) > exec.RewriteFrom && r.Engine.IsLarge(len(to.key(r)), len(value)):
		duplicateLater(r, t, item, to)
		return false
	default:
		w.DropValues() // the copy may need their memory
		err = duplicateNow(r, t, item, to)
	}
	if err != nil {
		r.ReplyStoreError(err)
	}
	return err == nil
}

func duplicateLater(r *exec.Request, t engine.Txn, item engine.Item, to target) {
	w, section, at := r.NewRewrite(), to.t.Section(), to.at
	w.Sources = []exec.Source{exec.SourceOf(t, item, true)}
	w.Start(r, func(ctx context.Context) (err error) {
		value := w.Sources[0].Value()
		if w.Staged, err = w.Engine.Stage(section, w.Args[at], len(value)); err == nil {
			err = w.Write(ctx, value)
		}
		return err
	})
}

func duplicateNow(r *exec.Request, t engine.Txn, item engine.Item, to target) error {
	to.t.Overwrite(to.key(r))
	if pin, large := t.Pin(item); large {
		defer pin.Release() // a pinned value does not move, whatever is evicted for the copy
		return to.t.Set(to.key(r), pin.Value(), item.Type(), item.ExpireAt())
	}
	copied := append(r.Worker.Body[:0], item.Value()...)
	defer r.Worker.KeepBody(copied)
	return to.t.Set(to.key(r), copied, item.Type(), item.ExpireAt())
}
