package hashes

import (
	"math"
	"math/big"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/longdouble"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hIncrBy: HINCRBY key field increment. The field keeps its expiry.
func hIncrBy(r *exec.Request) {
	delta, ok := r.IntArg(3)
	if !ok {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	h, ok := open(r, t)
	if !ok {
		return
	}
	n := int64(0)
	if e, found := h.get(r.Args[2]); found {
		if n, ok = intOf(e.value); !ok {
			r.Fail(errNotInteger)
			return
		}
	}
	if delta > 0 && n > math.MaxInt64-delta || delta < 0 && n < math.MinInt64-delta {
		r.Fail(errOverflow)
		return
	}
	n += delta
	text := strconv.AppendInt(r.Worker.Number[:0], n, 10)
	if h.setOne(text) {
		r.Notify(keyevent.Hash, "hincrby", r.Args[1])
		r.ReplyInt(n)
	}
}

// intOf is the integer that a value is.
func intOf(i shape.Item) (n int64, ok bool) {
	if n, ok := i.Int(); ok {
		return n, true
	}
	var number shape.Decimal
	return resp.ParseInt(i.Text(&number))
}

// setOne sets the field that is the command's second argument, which keeps its expiry. It reports
// false if it has answered an error.
func (h *hash) setOne(text []byte) bool {
	pair := [2][]byte{h.r.Args[2], text}
	if _, err := h.set(pair[:], 0, true); err != nil {
		h.r.ReplyValueError(err)
		return false
	}
	return true
}

// hIncrByFloat: HINCRBYFLOAT key field increment. The field keeps its expiry.
func hIncrByFloat(r *exec.Request) {
	delta, infinite, ok := longdouble.Parse(r.Args[3])
	switch {
	case !ok:
		r.Fail(errFloatArg)
		return
	case infinite:
		r.Fail(errNaNArg)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	h, ok := open(r, t)
	if !ok {
		return
	}
	sum := new(big.Float).SetPrec(longdouble.MantissaBits)
	if e, found := h.get(r.Args[2]); found {
		var number shape.Decimal
		if sum, infinite, ok = longdouble.Parse(e.value.Text(&number)); !ok {
			r.Fail(errNotFloat)
			return
		}
	}
	if infinite || longdouble.Overflows(sum.Add(sum, delta)) {
		r.Fail(errNaN)
		return
	}
	if text := longdouble.Append(nil, sum); h.setOne(text) {
		r.Notify(keyevent.Hash, "hincrbyfloat", r.Args[1])
		r.ReplyBulk(text)
	}
}
