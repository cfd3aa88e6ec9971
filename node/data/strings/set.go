package strings

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// grammar says which options a command has.
type grammar uint8

const (
	setGrammar grammar = iota
	getEXGrammar
	mSetEXGrammar
)

// setOptions are the options of SET, GETEX and MSETEX, which have most of them in common.
type setOptions struct {
	condition condition
	operand   int  // SET: the argument with which the condition compares the value
	get       bool // SET: answer the old value
	keepTTL   bool // SET, MSETEX
	persist   bool // GETEX
	expiry
}

// expiry is an option that says when a key expires.
type expiry struct {
	given    bool
	time     []byte // its argument; one that was uploaded is nil, and no number
	seconds  bool   // EX, EXAT; otherwise milliseconds
	absolute bool   // EXAT, PXAT
}

// conflicts reports whether an expiry of this kind contradicts an earlier option. As in Redis, the
// same kind may be repeated: the last one counts.
func (o *setOptions) conflicts(seconds, absolute bool) bool {
	if o.keepTTL || o.persist {
		return true
	}
	return o.given && (o.seconds != seconds || o.absolute != absolute)
}

// parse reads the options, which are the arguments from first on, and keeps views of args. ok is false
// for a syntax error.
func (o *setOptions) parse(args [][]byte, first int, g grammar) (ok bool) {
	stores := g != getEXGrammar
	for i := first; i < len(args); i++ {
		arg := args[i]
		switch {
		case stores && exec.Is(arg, "NX") && o.may(ifMissing):
			o.condition = ifMissing
		case stores && exec.Is(arg, "XX") && o.may(ifPresent):
			o.condition = ifPresent
		case g == setGrammar && o.condition == always && comparison(arg).compares() && i+1 < len(args):
			i++
			o.condition, o.operand = comparison(arg), i
		case g == setGrammar && exec.Is(arg, "GET"):
			o.get = true
		case stores && exec.Is(arg, "KEEPTTL") && !o.given:
			o.keepTTL = true
		case g == getEXGrammar && exec.Is(arg, "PERSIST") && !o.given:
			o.persist = true
		default:
			seconds, absolute, known := expiryOption(arg)
			if !known || i+1 == len(args) || o.conflicts(seconds, absolute) {
				return false
			}
			i++
			o.expiry = expiry{true, args[i], seconds, absolute}
		}
	}
	return true
}

// may reports whether condition c contradicts no earlier one.
func (o *setOptions) may(c condition) bool { return o.condition == always || o.condition == c }

// expiryOption reports whether arg is an option that sets an expiry, in which unit, and whether the
// time is absolute.
func expiryOption(arg []byte) (seconds, absolute, known bool) {
	switch {
	case exec.Is(arg, "EX"):
		return true, false, true
	case exec.Is(arg, "PX"):
		return false, false, true
	case exec.Is(arg, "EXAT"):
		return true, true, true
	case exec.Is(arg, "PXAT"):
		return false, true, true
	}
	return false, false, false
}

// deadline returns when the value expires, in unix milliseconds. ok is false if the argument is
// wrong; deadline has then answered the error.
func deadline(r *exec.Request, o *expiry) (at int64, ok bool) {
	n, isInt := resp.ParseInt(o.time)
	if !isInt {
		r.Fail(exec.ErrNotInteger)
		return 0, false
	}
	if n <= 0 || (o.seconds && n > math.MaxInt64/1000) {
		r.FailExpireTime()
		return 0, false
	}
	if o.seconds {
		n *= 1000
	}
	if !o.absolute {
		if n > math.MaxInt64-r.Now {
			r.FailExpireTime()
			return 0, false
		}
		n += r.Now
	}
	return n, true
}

// set: SET key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET]
// [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
func set(r *exec.Request) {
	if len(r.Args) == 3 { // fast path: no options, nothing to look up
		t, ok := r.Lock()
		if !ok {
			return
		}
		defer t.Unlock()
		if err := r.Put(t, r.Args[1], 2, 0); err != nil {
			r.ReplyStoreError(err)
			return
		}
		r.Notify(keyevent.String, "set", r.Args[1])
		r.ReplyOK()
		return
	}
	var o setOptions
	if !o.parse(r.Args, 3, setGrammar) {
		r.Fail(exec.ErrSyntax)
		return
	}
	switch store(r, &o, 2) {
	case stored:
		if !o.get {
			r.ReplyOK()
		}
	case unmet:
		if !o.get {
			r.ReplyNull()
		}
	}
}

// setNX: SETNX key value
func setNX(r *exec.Request) {
	o := setOptions{condition: ifMissing}
	switch store(r, &o, 2) {
	case stored:
		r.ReplyInt(1)
	case unmet:
		r.ReplyInt(0)
	}
}

// setEX: SETEX key seconds value
func setEX(r *exec.Request) {
	o := setOptions{expiry: expiry{given: true, time: r.Args[2], seconds: true}}
	if store(r, &o, 3) == stored {
		r.ReplyOK()
	}
}

// pSetEX: PSETEX key milliseconds value
func pSetEX(r *exec.Request) {
	o := setOptions{expiry: expiry{given: true, time: r.Args[2]}}
	if store(r, &o, 3) == stored {
		r.ReplyOK()
	}
}

// storeOutcome is the result of a conditional store.
type storeOutcome uint8

const (
	failed storeOutcome = iota // an error was answered, or the partition is held
	unmet                      // the condition does not hold
	stored
)

// store stores argument i under the command's key, as the options say. With o.get it answers the
// old value, otherwise only errors.
func store(r *exec.Request, o *setOptions, i int) storeOutcome {
	key, expireAt := r.Args[1], int64(0)
	if o.given {
		at, ok := deadline(r, &o.expiry)
		if !ok {
			return failed
		}
		expireAt = at
	}
	t, ok := r.Lock()
	if !ok {
		return failed
	}
	defer t.Unlock()
	start := len(r.Out)
	item, found := r.Find(t, key)
	compares := found && o.condition.compares()
	if found && item.Type() != engine.TypeString && (o.get || compares) {
		r.Fail(exec.ErrWrongType)
		return failed
	}
	met := o.condition.holds(found)
	if compares {
		if met, ok = judge(r, t, item, o.condition, o.operand); !ok {
			return failed
		}
	}
	r.Rewrite.DropValues() // the store may need their memory
	if o.get {
		r.Lookup(found, key)
		// Answered before the store, which may overwrite the value in place.
		r.ReplyItem(t, item, found)
	}
	if !met {
		return unmet
	}
	if err := putUntil(r, t, key, i, o.keepTTL, expireAt); err != nil {
		r.Undo(start)
		r.ReplyStoreError(err)
		return failed
	}
	notifySet(r, key, expireAt)
	return stored
}

// notifySet announces that a key was set, and when it expires, if its command says so.
func notifySet(r *exec.Request, key []byte, expireAt int64) {
	if r.Notify(keyevent.String, "set", key); expireAt == 0 {
		return
	}
	if r.Notify(keyevent.Generic, "expire", key); expireAt <= r.Now {
		r.Notify(keyevent.Expired, "expired", key)
	}
}

// putUntil stores argument i under key until expireAt, or with the expiry that the key has.
func putUntil(r *exec.Request, t engine.Txn, key []byte, i int, keepTTL bool, expireAt int64) error {
	if keepTTL {
		if item, found := t.Peek(key); found {
			expireAt = item.ExpireAt()
		}
	}
	if expireAt != 0 && expireAt <= r.Now {
		t.Delete(key) // EXAT in the past
		return nil
	}
	return r.Put(t, key, i, expireAt)
}

// getEX: GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
func getEX(r *exec.Request) {
	key := r.Args[1]
	var o setOptions
	if !o.parse(r.Args, 2, getEXGrammar) {
		r.Fail(exec.ErrSyntax)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, key)
	if !ok {
		return
	}
	if !found {
		r.ReplyNull()
		return
	}
	if !o.given {
		expires := item.ExpireAt() != 0
		r.ReplyItem(t, item, true)
		if o.persist && expires {
			t.SetExpire(key, 0)
			r.Notify(keyevent.Generic, "persist", key)
		}
		return
	}
	at, ok := deadline(r, &o.expiry) // only now: as in Redis, a missing key hides a wrong expiry
	if !ok {
		return
	}
	start := len(r.Out)
	r.ReplyItem(t, item, true) // before the item moves
	if value := len(r.Out); !r.ExpireKey(t, key, at) {
		refusal := r.Out[value:]
		r.Undo(start)
		r.Out = append(r.Out, refusal...) // in place of the value
		return
	}
	r.NotifyExpiry(at, key)
}
