package node

import (
	"math"
	"math/big"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// incr: INCR key
func incr(r *request) { r.add(1) }

// decr: DECR key
func decr(r *request) { r.add(-1) }

// incrBy: INCRBY key increment
func incrBy(r *request) {
	if n, ok := r.intArg(2); ok {
		r.add(n)
	}
}

// decrBy: DECRBY key decrement
func decrBy(r *request) {
	n, ok := r.intArg(2)
	if !ok {
		return
	}
	if n == math.MinInt64 { // its negative does not exist
		r.fail(errDecrOverflow)
		return
	}
	r.add(-n)
}

// add adds delta to the number under the command's key, which counts as 0 when
// it is missing and keeps its expiry.
func (r *request) add(delta int64) {
	key := r.args[1]
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.findString(t, key)
	if !ok {
		return
	}
	n, expireAt := int64(0), int64(0)
	if found {
		if n, ok = resp.ParseInt(item.Value()); !ok {
			r.fail(errNotInteger)
			return
		}
		expireAt = item.ExpireAt()
	}
	if (delta > 0 && n > math.MaxInt64-delta) || (delta < 0 && n < math.MinInt64-delta) {
		r.fail(errOverflow)
		return
	}
	n += delta
	text := strconv.AppendInt(r.worker.number[:0], n, 10)
	if err := t.Set(key, text, engine.TypeString, expireAt); err != nil {
		r.replyStoreError(err)
		return
	}
	r.replyInt(n)
}

// incrByFloat: INCRBYFLOAT key increment. See float.go for the arithmetic.
func incrByFloat(r *request) {
	key := r.args[1]
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.findString(t, key)
	if !ok {
		return
	}
	sum, infinite := new(big.Float).SetPrec(floatMantissaBits), false
	expireAt := int64(0)
	if found {
		if sum, infinite, ok = parseFloat(item.Value()); !ok {
			r.fail(errNotFloat)
			return
		}
		expireAt = item.ExpireAt()
	}
	delta, infiniteDelta, ok := parseFloat(r.args[2])
	if !ok {
		r.fail(errNotFloat)
		return
	}
	if infinite || infiniteDelta || floatOverflows(sum.Add(sum, delta)) {
		r.fail(errNaN)
		return
	}
	text := appendFloat(nil, sum)
	if err := t.Set(key, text, engine.TypeString, expireAt); err != nil {
		r.replyStoreError(err)
		return
	}
	r.replyBulk(text)
}
