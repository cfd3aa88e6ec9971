package node

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// expire: EXPIRE key seconds [NX | XX | GT | LT]
func expire(r *request) { r.expire(true, false) }

// pExpire: PEXPIRE key milliseconds [NX | XX | GT | LT]
func pExpire(r *request) { r.expire(false, false) }

// expireAt: EXPIREAT key unix-seconds [NX | XX | GT | LT]
func expireAt(r *request) { r.expire(true, true) }

// pExpireAt: PEXPIREAT key unix-milliseconds [NX | XX | GT | LT]
func pExpireAt(r *request) { r.expire(false, true) }

// expireCondition is the set of options of EXPIRE and its kin.
type expireCondition struct{ nx, xx, gt, lt bool }

// parseExpireCondition reads the options; ok is false if they contradict each
// other or are unknown, and the error is then already answered.
func (r *request) parseExpireCondition(args [][]byte) (c expireCondition, ok bool) {
	for _, arg := range args {
		switch {
		case is(arg, "NX"):
			c.nx = true
		case is(arg, "XX"):
			c.xx = true
		case is(arg, "GT"):
			c.gt = true
		case is(arg, "LT"):
			c.lt = true
		default:
			r.failQuoting("ERR Unsupported option ", arg)
			return c, false
		}
	}
	if c.nx && (c.xx || c.gt || c.lt) {
		r.fail(errExpireNX)
		return c, false
	}
	if c.gt && c.lt {
		r.fail(errExpireGTLT)
		return c, false
	}
	return c, true
}

// allows tells whether the present expiry (0: none, which counts as infinitely
// late) lets the new one be set.
func (c expireCondition) allows(present, at int64) bool {
	switch {
	case c.nx && present != 0, c.xx && present == 0:
		return false
	case c.gt:
		return present != 0 && at > present
	case c.lt:
		return present == 0 || at < present
	}
	return true
}

func (r *request) expire(seconds, absolute bool) {
	condition, ok := r.parseExpireCondition(r.args[3:])
	if !ok {
		return
	}
	at, ok := r.intArg(2)
	if !ok {
		return
	}
	if seconds {
		if at > math.MaxInt64/1000 || at < math.MinInt64/1000 {
			r.failExpireTime()
			return
		}
		at *= 1000
	}
	if !absolute {
		if at > math.MaxInt64-r.now {
			r.failExpireTime()
			return
		}
		at += r.now
	}
	key := r.args[1]
	t := r.lock()
	defer t.Unlock()
	item, found := r.find(t, key)
	if !found || !condition.allows(item.ExpireAt(), at) {
		r.replyInt(0)
		return
	}
	if r.expireKey(t, key, at) {
		r.replyInt(1)
	}
}

// expireKey sets the expiry of a key that exists, which deletes it if that
// time has come. False if there is no memory for a first expiry; the error is then
// already answered.
func (r *request) expireKey(t engine.Txn, key []byte, at int64) bool {
	if at <= r.now {
		return t.Delete(key)
	}
	if !t.SetExpire(key, at) {
		r.fail(errOOM)
		return false
	}
	return true
}

// persist: PERSIST key
func persist(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found := r.find(t, r.args[1])
	had := found && item.ExpireAt() != 0
	if had {
		t.SetExpire(r.args[1], 0)
	}
	r.replyBool(had)
}

// ttl: TTL, PTTL, EXPIRETIME and PEXPIRETIME key. Seconds are rounded to the
// nearest, as in Redis.
func ttl(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found := t.Peek(r.args[1])
	r.worker.count.lookup(found)
	if !found {
		r.replyInt(-2)
		return
	}
	at := item.ExpireAt()
	if at == 0 {
		r.replyInt(-1)
		return
	}
	switch r.cmd.ID {
	case command.TTL:
		r.replyInt(roundSeconds(at - r.now))
	case command.PTTL:
		r.replyInt(at - r.now)
	case command.ExpireTime:
		r.replyInt(roundSeconds(at))
	default:
		r.replyInt(at)
	}
}

// roundSeconds rounds to the nearest second, without overflow at the end of time.
func roundSeconds(millis int64) int64 { return millis/1000 + (millis%1000+500)/1000 }
