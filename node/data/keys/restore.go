package keys

import (
	"context"
	"errors"
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// restoreOptions are the options of RESTORE. IDLETIME and FREQ are checked but have no effect,
// because Dunlin keeps neither.
type restoreOptions struct {
	replace, absolute bool
	idle, freq        bool // given
}

// restore: RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
func restore(r *exec.Request) {
	o, ok := parseRestoreOptions(r, r.Args[4:])
	if !ok {
		return
	}
	// The partition is not locked for the second step, which copies the payload.
	if later := restoreNow(r, o); later {
		restoreLater(r)
	}
}

// restoreNow answers RESTORE, unless it takes so long that a goroutine must begin it.
func restoreNow(r *exec.Request, o restoreOptions) (later bool) {
	t, ok := r.Lock()
	if !ok {
		return false
	}
	defer t.Unlock()
	if !o.replace && exec.Exists(t, r.Args[1]) {
		r.Fail(ErrBusyKey)
		return false
	}
	at, ok := restoreExpiry(r, o)
	if !ok {
		return false
	}
	if w := r.Rewrite; w != nil && (w.Err != nil || w.Staged.Live() || w.Built != nil) {
		err := w.Err
		if built, ok := w.Built.(*aside); ok && err == nil {
			err = restoreAs(r, t, at, func() error { return built.publish(t, r.Args[1], at) })
		} else if err == nil {
			err = restoreAs(r, t, at, func() error { return t.SetStaged(&w.Staged, w.Typ, at) })
		}
		replyRestored(r, err)
		return false
	}
	done, err := restoreCollection(r, t, at)
	if done {
		replyRestored(r, err)
		return false
	}
	typ, value, now, err := payload(r)
	if !now && err == nil {
		return true
	}
	if err == nil {
		err = restoreAs(r, t, at, func() error { return setRead(r, t, typ, value, at) })
	}
	replyRestored(r, err)
	return false
}

// parseRestoreOptions parses the options. If they are wrong, it answers the error and ok is false.
func parseRestoreOptions(r *exec.Request, args [][]byte) (o restoreOptions, ok bool) {
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case exec.Is(args[i], "REPLACE"):
			o.replace = true
		case exec.Is(args[i], "ABSTTL"):
			o.absolute = true
		case exec.Is(args[i], "IDLETIME") && more && !o.freq:
			i++
			o.idle = true
			if !restoreNumber(r, 4+i, math.MaxInt64, errIdleTime) {
				return o, false
			}
		case exec.Is(args[i], "FREQ") && more && !o.idle:
			i++
			o.freq = true
			if !restoreNumber(r, 4+i, math.MaxUint8, errFrequency) {
				return o, false
			}
		default:
			r.Fail(exec.ErrSyntax)
			return o, false
		}
	}
	return o, true
}

// restoreNumber reports whether argument i is a number from 0 to most. If not, it answers the
// error.
func restoreNumber(r *exec.Request, i int, most int64, problem string) bool {
	n, ok := r.IntArg(i)
	if ok && (n < 0 || n > most) {
		r.Fail(problem)
		return false
	}
	return ok
}

// restoreExpiry returns when the key expires, in unix milliseconds, 0 for never. If the argument is
// invalid, it answers the error and ok is false.
func restoreExpiry(r *exec.Request, o restoreOptions) (at int64, ok bool) {
	at, ok = r.IntArg(2)
	switch {
	case !ok:
		return 0, false
	case at < 0:
		r.Fail(errTTL)
		return 0, false
	case at > 0 && !o.absolute:
		at = min(at, math.MaxInt64-r.Now) + r.Now
	}
	return at, true
}

// restoreCollection stores a collection that makes a packed value, from a short payload. done is
// false, and nothing has changed, if the payload has something else.
func restoreCollection(r *exec.Request, t engine.Txn, at int64) (done bool, err error) {
	b, err := r.Value(3)
	if err != nil || r.Rewrite != nil || len(b) > restoreSmall {
		return false, nil
	}
	if err := rdb.Check(b); err != nil {
		return true, err
	}
	typ, err := r.Types.CollectionOf(b, r.Level())
	if typ == nil || err != nil {
		return err != nil, err
	}
	return restorePacked(r, t, typ, b, at)
}

// payload parses the payload. now is false if a goroutine must check the payload or copy the value
// first, because that would take too long here.
func payload(r *exec.Request) (typ *exec.Type, value exec.Restored, now bool, err error) {
	b, err := r.Value(3)
	switch {
	case err != nil:
		return nil, nil, false, err
	case r.Rewrite == nil && len(b) > exec.RewriteFrom:
		return nil, nil, false, nil
	case r.Rewrite == nil:
		err = rdb.Check(b)
	}
	if err == nil {
		var collection *exec.Type
		if collection, err = r.Types.CollectionOf(b, r.Level()); collection != nil {
			return nil, nil, false, err
		}
	}
	if err == nil {
		typ, value, err = r.Types.Restore(b, r.Level())
	}
	if err != nil {
		return nil, nil, false, err
	}
	return typ, value, value.Len() <= exec.RewriteFrom, nil
}

// restoreLater has a goroutine check the payload, and stage the value if it is long.
func restoreLater(r *exec.Request) {
	w, types, level := r.NewRewrite(), r.Types, r.Level()
	section, now := r.Section(), r.Now
	w.Start(r, func(ctx context.Context) error {
		b, err := w.Value(3)
		if err == nil {
			err = rdb.Check(b)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if typ, err := types.CollectionOf(b, level); err != nil {
			return err
		} else if typ != nil {
			built := &aside{e: w.Engine, section: section, typ: typ, now: now}
			w.Built = built
			return built.build(ctx, w, b)
		}
		typ, value, err := types.Restore(b, level)
		if err != nil || value.Len() <= exec.RewriteFrom {
			return err
		}
		w.Typ = typ.ID
		if err = w.Stage(w.Args[1], value.Len()); err != nil {
			return err
		}
		return value.WriteTo(&w.Staged)
	})
}

// restoreAs calls store, or deletes the key if its expiry has passed already.
func restoreAs(r *exec.Request, t engine.Txn, at int64, store func() error) error {
	if at != 0 && at <= r.Now {
		deleteReplaced(r, t)
		return nil
	}
	replaced := exec.Exists(t, r.Args[1])
	t.Overwrite(r.Args[1])
	err := store()
	if err == nil {
		notifyNew(&r.Notices, replaced, r.Args[1])
		r.Notify(keyevent.Generic, "restore", r.Args[1])
	}
	return err
}

// deleteReplaced deletes what RESTORE replaces by nothing.
func deleteReplaced(r *exec.Request, t engine.Txn) {
	if t.Delete(r.Args[1]) {
		r.Notify(keyevent.Generic, "del", r.Args[1])
	}
}

// setRead stores a value that is short enough to be copied here.
func setRead(r *exec.Request, t engine.Txn, typ *exec.Type, value exec.Restored, at int64) error {
	b := value.Append(r.Worker.Body[:0])
	defer r.Worker.KeepBody(b)
	return t.Set(r.Args[1], b, typ.ID, at)
}

// replyRestored answers a RESTORE that ended with err.
func replyRestored(r *exec.Request, err error) {
	var level *exec.LevelError
	var unsupported rdb.UnsupportedError
	switch {
	case err == nil:
		r.ReplyOK()
	case errors.As(err, &level):
		r.Fail(level.Error())
	case errors.Is(err, rdb.ErrChecksum):
		r.Fail(ErrPayload)
	case errors.As(err, &unsupported):
		r.Fail(errFormat + ": " + unsupported.Error())
	case errors.Is(err, rdb.ErrFormat):
		r.Fail(errFormat)
	case errors.Is(err, rdb.ErrTooLong):
		r.Fail("ERR " + err.Error())
	case errors.Is(err, errEvicted):
		r.Fail(exec.ErrOOM)
	default:
		r.ReplyValueError(err)
	}
}
