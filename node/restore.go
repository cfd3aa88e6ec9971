package node

import (
	"errors"
	"math"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// restoreOptions are the options of RESTORE. IDLETIME and FREQ are read, but have no effect: neither is kept here.
type restoreOptions struct {
	replace, absolute bool
	idle, freq        bool // given
}

// restore: RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
func restore(r *request) {
	o, ok := r.restoreOptions(r.args[4:])
	if !ok {
		return
	}
	key := r.args[1]
	t := r.lock()
	defer t.Unlock()
	if !o.replace && exists(t, key) {
		r.fail(errBusyKey)
		return
	}
	at, ok := r.restoreExpiry(o)
	if !ok {
		return
	}
	if w := r.rewrite; w != nil && (w.err != nil || w.staged.Live()) {
		err := w.err
		if err == nil {
			err = r.restoreAs(t, at, func() error { return t.SetStaged(&w.staged, engine.TypeString, at) })
		}
		r.replyRestored(err)
		return
	}
	if s, now, err := r.payload(); now || err != nil {
		if err == nil {
			err = r.restoreAs(t, at, func() error { return r.setRead(t, s, at) })
		}
		r.replyRestored(err)
	} else if r.holding {
		r.fail(errRestoreTooLarge)
	} else {
		r.restoreLater()
	}
}

// restoreOptions reads the options; if they are wrong, that is answered.
func (r *request) restoreOptions(args [][]byte) (o restoreOptions, ok bool) {
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case is(args[i], "REPLACE"):
			o.replace = true
		case is(args[i], "ABSTTL"):
			o.absolute = true
		case is(args[i], "IDLETIME") && more && !o.freq:
			i++
			o.idle = true
			if !r.restoreNumber(4+i, math.MaxInt64, errIdleTime) {
				return o, false
			}
		case is(args[i], "FREQ") && more && !o.idle:
			i++
			o.freq = true
			if !r.restoreNumber(4+i, math.MaxUint8, errFrequency) {
				return o, false
			}
		default:
			r.fail(errSyntax)
			return o, false
		}
	}
	return o, true
}

// restoreNumber tells whether argument i is a number from 0 to most; if not, that is answered.
func (r *request) restoreNumber(i int, most int64, problem string) bool {
	n, ok := r.intArg(i)
	if ok && (n < 0 || n > most) {
		r.fail(problem)
		return false
	}
	return ok
}

// restoreExpiry is when the key is to expire, in unix milliseconds; if that makes no sense, it is answered.
func (r *request) restoreExpiry(o restoreOptions) (at int64, ok bool) {
	at, ok = r.intArg(2)
	switch {
	case !ok:
		return 0, false
	case at < 0:
		r.fail(errTTL)
		return 0, false
	case at > 0 && !o.absolute:
		at = min(at, math.MaxInt64-r.now) + r.now
	}
	return at, true
}

// payload reads the payload. now is false if that would take too long here, unless it was found right before.
func (r *request) payload() (s rdb.String, now bool, err error) {
	b, err := r.value(3)
	limit := rewriteFrom
	if r.holding {
		limit = maxPayloadHeld
	}
	switch {
	case err != nil:
		return s, false, err
	case r.rewrite == nil && len(b) > limit:
		return s, false, nil
	case r.rewrite == nil:
		err = rdb.Check(b)
	}
	if err == nil {
		s, err = rdb.Read(b)
	}
	return s, s.Len() <= limit, err
}

// restoreLater has a goroutine check the payload, and stage the string if it is long.
func (r *request) restoreLater() {
	w := r.newRewrite()
	w.start(r.conn, func(n *Node) error {
		b, err := valueOf(w.args, w.upload, 3)
		if err == nil {
			err = rdb.Check(b)
		}
		if err != nil {
			return err
		}
		s, err := rdb.Read(b)
		if err != nil || s.Len() <= rewriteFrom {
			return err
		}
		if w.staged, err = n.engine.Stage(w.args[1], s.Len()); err != nil {
			return err
		}
		return s.WriteTo(&w.staged)
	})
}

// restoreAs stores the string, unless its time has passed already.
func (r *request) restoreAs(t engine.Txn, at int64, store func() error) error {
	if at != 0 && at <= r.now {
		t.Delete(r.args[1])
		return nil
	}
	return store()
}

// setRead stores a string that is not long.
func (r *request) setRead(t engine.Txn, s rdb.String, at int64) error {
	value := s.Append(r.worker.body[:0])
	defer r.worker.keepBody(value)
	return t.Set(r.args[1], value, engine.TypeString, at)
}

func (r *request) replyRestored(err error) {
	switch {
	case err == nil:
		r.replyOK()
	case errors.Is(err, rdb.ErrChecksum):
		r.fail(errPayload)
	case errors.Is(err, rdb.ErrFormat):
		r.fail(errFormat)
	default:
		r.replyStoreError(err)
	}
}
