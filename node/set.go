package node

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// condition is on what a SET depends.
type condition uint8

const (
	always condition = iota
	ifMissing
	ifPresent
	ifEqual
)

// grammar says which options a command knows.
type grammar uint8

const (
	setGrammar grammar = iota
	getEXGrammar
	mSetEXGrammar
)

// setOptions are the options of SET, GETEX and MSETEX, which share most of them.
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

// conflicts tells whether an expiry of this kind contradicts an option given
// before. The same kind may be repeated, as in Redis: the last one counts.
func (o *setOptions) conflicts(seconds, absolute bool) bool {
	if o.keepTTL || o.persist {
		return true
	}
	return o.expire != nil && (o.seconds != seconds || o.absolute != absolute)
}

// parse reads the options. It keeps views of args. ok is false for a syntax error.
func (o *setOptions) parse(args [][]byte, g grammar) (ok bool) {
	stores := g != getEXGrammar
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case stores && is(arg, "NX") && o.may(ifMissing):
			o.condition = ifMissing
		case stores && is(arg, "XX") && o.may(ifPresent):
			o.condition = ifPresent
		case g == setGrammar && is(arg, "IFEQ") && o.condition == always && i+1 < len(args):
			i++
			o.condition, o.equal = ifEqual, args[i]
		case g == setGrammar && is(arg, "GET"):
			o.get = true
		case stores && is(arg, "KEEPTTL") && o.expire == nil:
			o.keepTTL = true
		case g == getEXGrammar && is(arg, "PERSIST") && o.expire == nil:
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

// may tells whether condition c contradicts none given before.
func (o *setOptions) may(c condition) bool { return o.condition == always || o.condition == c }

// holds tells whether the condition holds for what a key has.
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

// expiryOption tells whether arg is an option that gives an expiry, and in
// which unit and from when.
func expiryOption(arg []byte) (seconds, absolute, known bool) {
	switch {
	case is(arg, "EX"):
		return true, false, true
	case is(arg, "PX"):
		return false, false, true
	case is(arg, "EXAT"):
		return true, true, true
	case is(arg, "PXAT"):
		return false, true, true
	}
	return false, false, false
}

// deadline computes when the value expires, in unix milliseconds. ok is false
// for an argument that makes no sense; the error is then already answered.
func (r *request) deadline(o *setOptions) (at int64, ok bool) {
	n, isInt := resp.ParseInt(o.expire)
	if !isInt {
		r.fail(errNotInteger)
		return 0, false
	}
	if n <= 0 || (o.seconds && n > math.MaxInt64/1000) {
		r.failExpireTime()
		return 0, false
	}
	if o.seconds {
		n *= 1000
	}
	if !o.absolute {
		if n > math.MaxInt64-r.now {
			r.failExpireTime()
			return 0, false
		}
		n += r.now
	}
	return n, true
}

// set: SET key value [NX | XX | IFEQ value] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
func set(r *request) {
	if len(r.args) == 3 { // fast path: no options, nothing to look up
		t := r.lock()
		defer t.Unlock()
		if err := r.put(t, r.args[1], 2, 0); err != nil {
			r.replyStoreError(err)
			return
		}
		r.replyOK()
		return
	}
	var o setOptions
	if !o.parse(r.args[3:], setGrammar) {
		r.fail(errSyntax)
		return
	}
	switch r.store(&o, 2) {
	case stored:
		if !o.get {
			r.replyOK()
		}
	case unmet:
		if !o.get {
			r.replyNull()
		}
	}
}

// setNX: SETNX key value
func setNX(r *request) {
	o := setOptions{condition: ifMissing}
	switch r.store(&o, 2) {
	case stored:
		r.replyInt(1)
	case unmet:
		r.replyInt(0)
	}
}

// setEX: SETEX key seconds value
func setEX(r *request) {
	o := setOptions{expire: r.args[2], seconds: true}
	if r.store(&o, 3) == stored {
		r.replyOK()
	}
}

// pSetEX: PSETEX key milliseconds value
func pSetEX(r *request) {
	o := setOptions{expire: r.args[2]}
	if r.store(&o, 3) == stored {
		r.replyOK()
	}
}

// storeOutcome is what became of a conditional store.
type storeOutcome uint8

const (
	failed storeOutcome = iota // an error is answered
	unmet                      // the condition does not hold
	stored
)

// store stores argument i under the command's key as the options say. With o.get it
// answers the old value, else nothing but errors.
func (r *request) store(o *setOptions, i int) storeOutcome {
	key, expireAt := r.args[1], int64(0)
	if o.expire != nil {
		at, ok := r.deadline(o)
		if !ok {
			return failed
		}
		expireAt = at
	}
	t := r.lock()
	defer t.Unlock()
	start := len(r.out)
	item, found := r.find(t, key)
	if found && item.Type() != engine.TypeString && (o.get || o.condition == ifEqual) {
		r.fail(errWrongType)
		return failed
	}
	if o.get {
		r.worker.count.lookup(found)
		// Answered before the store, which may overwrite the value in place.
		r.replyItem(t, item, found)
	}
	if !o.holds(item, found) {
		return unmet
	}
	if err := r.putUntil(t, key, i, o.keepTTL, expireAt); err != nil {
		r.takeBack(start)
		r.replyStoreError(err)
		return failed
	}
	return stored
}

// putUntil stores argument i under key until expireAt, or for as long as what the key has.
func (r *request) putUntil(t engine.Txn, key []byte, i int, keepTTL bool, expireAt int64) error {
	if keepTTL {
		if item, found := t.Peek(key); found {
			expireAt = item.ExpireAt()
		}
	}
	if expireAt != 0 && expireAt <= r.now {
		t.Delete(key) // EXAT in the past
		return nil
	}
	return r.put(t, key, i, expireAt)
}

// delIfEq: DELIFEQ key value
func delIfEq(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.findString(t, r.args[1])
	if !ok {
		return
	}
	equal := found && bytes.Equal(item.Value(), r.args[2])
	if equal {
		t.Delete(r.args[1])
	}
	r.replyBool(equal)
}

// getEX: GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
func getEX(r *request) {
	key := r.args[1]
	var o setOptions
	if !o.parse(r.args[2:], getEXGrammar) {
		r.fail(errSyntax)
		return
	}
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.readString(t, key)
	if !ok {
		return
	}
	if !found {
		r.replyNull()
		return
	}
	if o.expire == nil {
		r.replyItem(t, item, true)
		if o.persist {
			t.SetExpire(key, 0)
		}
		return
	}
	at, ok := r.deadline(&o) // only now: a missing key hides a bad expiry
	if !ok {
		return
	}
	start := len(r.out)
	r.replyItem(t, item, true) // before the item moves
	if value := len(r.out); !r.expireKey(t, key, at) {
		refusal := r.out[value:]
		r.takeBack(start)
		r.out = append(r.out, refusal...) // in place of the value
	}
}
