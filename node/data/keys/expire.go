package keys

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// expire: EXPIRE key seconds [NX | XX | GT | LT]
func expire(r *exec.Request) { setExpiry(r, true, false) }

// pExpire: PEXPIRE key milliseconds [NX | XX | GT | LT]
func pExpire(r *exec.Request) { setExpiry(r, false, false) }

// expireAt: EXPIREAT key unix-seconds [NX | XX | GT | LT]
func expireAt(r *exec.Request) { setExpiry(r, true, true) }

// pExpireAt: PEXPIREAT key unix-milliseconds [NX | XX | GT | LT]
func pExpireAt(r *exec.Request) { setExpiry(r, false, true) }

// expireCondition is the set of options of EXPIRE and its kin.
type expireCondition struct{ nx, xx, gt, lt bool }

// parseExpireCondition reads the options; ok is false if they contradict each
// other or are unknown, and the error is then already answered.
func parseExpireCondition(r *exec.Request, args [][]byte) (c expireCondition, ok bool) {
	for _, arg := range args {
		switch {
		case exec.Is(arg, "NX"):
			c.nx = true
		case exec.Is(arg, "XX"):
			c.xx = true
		case exec.Is(arg, "GT"):
			c.gt = true
		case exec.Is(arg, "LT"):
			c.lt = true
		default:
			r.FailQuoting("ERR Unsupported option ", arg)
			return c, false
		}
	}
	if c.nx && (c.xx || c.gt || c.lt) {
		r.Fail(errExpireNX)
		return c, false
	}
	if c.gt && c.lt {
		r.Fail(errExpireGTLT)
		return c, false
	}
	return c, true
}

// allows reports whether the present expiry (0: none, which counts as infinitely
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

func setExpiry(r *exec.Request, seconds, absolute bool) {
	condition, ok := parseExpireCondition(r, r.Args[3:])
	if !ok {
		return
	}
	at, ok := r.IntArg(2)
	if !ok {
		return
	}
	if seconds {
		if at > math.MaxInt64/1000 || at < math.MinInt64/1000 {
			r.FailExpireTime()
			return
		}
		at *= 1000
	}
	if !absolute {
		if at > math.MaxInt64-r.Now {
			r.FailExpireTime()
			return
		}
		at += r.Now
	}
	key := r.Args[1]
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := r.Find(t, key)
	if !found || !condition.allows(item.ExpireAt(), at) {
		r.ReplyInt(0)
		return
	}
	if r.ExpireKey(t, key, at) {
		r.NotifyExpiry(at, key)
		r.ReplyInt(1)
	}
}

// persist: PERSIST key
func persist(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := r.Find(t, r.Args[1])
	had := found && item.ExpireAt() != 0
	if had {
		t.SetExpire(r.Args[1], 0)
		r.Notify(keyevent.Generic, "persist", r.Args[1])
	}
	r.ReplyBool(had)
}

// ttl: TTL, PTTL, EXPIRETIME and PEXPIRETIME key. Seconds are rounded to the
// nearest, as in Redis.
func ttl(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := t.Peek(r.Args[1])
	r.Lookup(found, r.Args[1])
	if !found {
		r.ReplyInt(-2)
		return
	}
	at := item.ExpireAt()
	if at == 0 {
		r.ReplyInt(-1)
		return
	}
	switch r.Cmd.ID {
	case command.TTL:
		r.ReplyInt(roundSeconds(at - r.Now))
	case command.PTTL:
		r.ReplyInt(at - r.Now)
	case command.ExpireTime:
		r.ReplyInt(roundSeconds(at))
	default:
		r.ReplyInt(at)
	}
}

// roundSeconds rounds to the nearest second, without overflow at the end of time.
func roundSeconds(millis int64) int64 { return millis/1000 + (millis%1000+500)/1000 }
