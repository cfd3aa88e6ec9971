package strings

import (
	"math"
	"math/big"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/longdouble"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// incr: INCR key
func incr(r *exec.Request) { add(r, 1) }

// decr: DECR key
func decr(r *exec.Request) { add(r, -1) }

// incrBy: INCRBY key increment
func incrBy(r *exec.Request) {
	if n, ok := r.IntArg(2); ok {
		add(r, n)
	}
}

// decrBy: DECRBY key decrement
func decrBy(r *exec.Request) {
	n, ok := r.IntArg(2)
	if !ok {
		return
	}
	if n == math.MinInt64 { // its negative does not exist
		r.Fail(errDecrOverflow)
		return
	}
	add(r, -n)
}

// add adds delta to the number under the command's key, which counts as 0 when
// it is missing and keeps its expiry.
func add(r *exec.Request, delta int64) {
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
	n, expireAt := int64(0), int64(0)
	if found {
		if n, ok = resp.ParseInt(item.Value()); !ok {
			r.Fail(exec.ErrNotInteger)
			return
		}
		expireAt = item.ExpireAt()
	}
	if (delta > 0 && n > math.MaxInt64-delta) || (delta < 0 && n < math.MinInt64-delta) {
		r.Fail(errOverflow)
		return
	}
	n += delta
	text := strconv.AppendInt(r.Worker.Number[:0], n, 10)
	if err := t.Set(key, text, engine.TypeString, expireAt); err != nil {
		r.ReplyStoreError(err)
		return
	}
	r.Notify(keyevent.String, "incrby", key)
	r.ReplyInt(n)
}

// incrByFloat: INCRBYFLOAT key increment. Package longdouble has the arithmetic.
func incrByFloat(r *exec.Request) {
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
	sum, infinite := new(big.Float).SetPrec(longdouble.MantissaBits), false
	expireAt := int64(0)
	if found {
		if sum, infinite, ok = longdouble.Parse(item.Value()); !ok {
			r.Fail(errNotFloat)
			return
		}
		expireAt = item.ExpireAt()
	}
	delta, infiniteDelta, ok := longdouble.Parse(r.Args[2])
	if !ok {
		r.Fail(errNotFloat)
		return
	}
	if infinite || infiniteDelta || longdouble.Overflows(sum.Add(sum, delta)) {
		r.Fail(errNaN)
		return
	}
	text := longdouble.Append(nil, sum)
	if err := t.Set(key, text, engine.TypeString, expireAt); err != nil {
		r.ReplyStoreError(err)
		return
	}
	r.Notify(keyevent.String, "incrbyfloat", key)
	r.ReplyBulk(text)
}
