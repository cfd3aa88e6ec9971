package strings

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// condition is what a SET depends on.
type condition uint8

const (
	always condition = iota
	ifMissing
	ifPresent
	ifEqual
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
	equal     []byte // SET: what the value must be, for ifEqual
	get       bool   // SET: answer the old value
	keepTTL   bool   // SET, MSETEX
	persist   bool   // GETEX

	// The expiry: the option that gave it and its argument, nil for none.
	expire   []byte
	seconds  bool // EX, EXAT; otherwise milliseconds
	absolute bool // EXAT, PXAT
}

// conflicts reports whether an expiry of this kind contradicts an earlier option. As in Redis, the
// same kind may be repeated: the last one counts.
func (o *setOptions) conflicts(seconds, absolute bool) bool {
	if o.keepTTL || o.persist {
		return true
	}
	return o.expire != nil && (o.seconds != seconds || o.absolute != absolute)
}

// parse reads the options, and keeps views of args. ok is false for a syntax error.
func (o *setOptions) parse(args [][]byte, g grammar) (ok bool) {
	stores := g != getEXGrammar
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case stores && exec.Is(arg, "NX") && o.may(ifMissing):
			o.condition = ifMissing
		case stores && exec.Is(arg, "XX") && o.may(ifPresent):
			o.condition = ifPresent
		case g == setGrammar && exec.Is(arg, "IFEQ") && o.condition == always && i+1 < len(args):
			i++
			o.condition, o.equal = ifEqual, args[i]
		case g == setGrammar && exec.Is(arg, "GET"):
			o.get = true
		case stores && exec.Is(arg, "KEEPTTL") && o.expire == nil:
			o.keepTTL = true
		case g == getEXGrammar && exec.Is(arg, "PERSIST") && o.expire == nil:
			o.persist = true
		default:
			seconds, absolute, known := expiryOption(arg)
			if !known || i+1 == len(args) || o.conflicts(seconds, absolute) {
				return false
			}
			i++
			o.expire, o.seconds, o.absolute = args[i], seconds, absolute
		}
	}
	return true
}

// may reports whether condition c contradicts no earlier one.
func (o *setOptions) may(c condition) bool { return o.condition == always || o.condition == c }

// holds reports whether the present value of a key meets the condition.
func (o *setOptions) holds(item engine.Item, found bool) bool {
	switch o.condition {
	case ifMissing:
		return !found
	case ifPresent:
		return found
	case ifEqual:
		return found && bytes.Equal(item.Value(), o.equal)
	}
	return true
}

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
func deadline(r *exec.Request, o *setOptions) (at int64, ok bool) {
	n, isInt := resp.ParseInt(o.expire)
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

// set: SET key value [NX | XX | IFEQ value] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
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
	if !o.parse(r.Args[3:], setGrammar) {
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
	o := setOptions{expire: r.Args[2], seconds: true}
	if store(r, &o, 3) == stored {
		r.ReplyOK()
	}
}

// pSetEX: PSETEX key milliseconds value
func pSetEX(r *exec.Request) {
	o := setOptions{expire: r.Args[2]}
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
	if o.expire != nil {
		at, ok := deadline(r, o)
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
	if found && item.Type() != engine.TypeString && (o.get || o.condition == ifEqual) {
		r.Fail(exec.ErrWrongType)
		return failed
	}
	if o.get {
		r.Lookup(found, key)
		// Answered before the store, which may overwrite the value in place.
		r.ReplyItem(t, item, found)
	}
	if !o.holds(item, found) {
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

// delIfEq: DELIFEQ key value
func delIfEq(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.FindString(t, r.Args[1])
	if !ok {
		return
	}
	equal := found && bytes.Equal(item.Value(), r.Args[2])
	if equal {
		t.Delete(r.Args[1])
		r.Notify(keyevent.Generic, "del", r.Args[1])
	}
	r.ReplyBool(equal)
}

// getEX: GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
func getEX(r *exec.Request) {
	key := r.Args[1]
	var o setOptions
	if !o.parse(r.Args[2:], getEXGrammar) {
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
	if o.expire == nil {
		expires := item.ExpireAt() != 0
		r.ReplyItem(t, item, true)
		if o.persist && expires {
			t.SetExpire(key, 0)
			r.Notify(keyevent.Generic, "persist", key)
		}
		return
	}
	at, ok := deadline(r, &o) // only now: as in Redis, a missing key hides a wrong expiry
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
