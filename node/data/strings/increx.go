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

// incrOptions are the options of INCREX, as views of its arguments; nil: not given.
type incrOptions struct {
	expiry
	byInt, byFloat   []byte
	lower, upper     []byte
	saturate         bool
	persist, ifUnset bool // PERSIST, ENX
}

// parse reads the options. Each may be given once. ok is false for a syntax error.
func (o *incrOptions) parse(args [][]byte) (ok bool) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case exec.Is(word, "SATURATE") && !o.saturate:
			o.saturate = true
			continue
		case exec.Is(word, "PERSIST") && !o.persist && !o.ifUnset && !o.given:
			o.persist = true
			continue
		case exec.Is(word, "ENX") && !o.ifUnset && !o.persist:
			o.ifUnset = true
			continue
		case i+1 == len(args):
			return false
		}
		i++
		switch value := args[i]; {
		case exec.Is(word, "BYINT") && o.byInt == nil && o.byFloat == nil:
			o.byInt = value
		case exec.Is(word, "BYFLOAT") && o.byInt == nil && o.byFloat == nil:
			o.byFloat = value
		case exec.Is(word, "LBOUND") && o.lower == nil:
			o.lower = value
		case exec.Is(word, "UBOUND") && o.upper == nil:
			o.upper = value
		default:
			seconds, absolute, known := expiryOption(word)
			if !known || o.given || o.persist {
				return false
			}
			o.expiry = expiry{true, value, seconds, absolute}
		}
	}
	return true
}

// incrEx: INCREX key [BYINT n | BYFLOAT n] [LBOUND n] [UBOUND n] [SATURATE]
// [EX s | PX ms | EXAT s | PXAT ms | PERSIST] [ENX]
func incrEx(r *exec.Request) {
	var o incrOptions
	switch {
	case !o.parse(r.Args[2:]):
		r.Fail(exec.ErrSyntax)
		return
	case o.ifUnset && !o.given:
		r.Fail(errExpiryMissing)
		return
	}
	var sum summer
	if o.byFloat != nil {
		sum = &floatSum{}
	} else {
		sum = &intSum{}
	}
	if refusal := sum.parse(&o); refusal != "" {
		r.Fail(refusal)
		return
	}
	at := int64(0)
	if o.given {
		var ok bool
		if at, ok = deadline(r, &o.expiry); !ok {
			return
		}
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.FindString(t, r.Args[1])
	if !ok {
		return
	}
	var old []byte
	if found {
		old = item.Value()
	}
	applies, refusal := sum.add(old, found, o.saturate)
	if refusal != "" {
		r.Fail(refusal)
		return
	}
	if applies && !storeSum(r, t, item, found, sum, &o, at) {
		return
	}
	r.Out = resp.AppendArray(r.Out, 2)
	r.Out = sum.appendReply(r.Out, r.Version())
}

// storeSum stores the result under the command's key, which expires as the options say. It reports
// false if an error was answered.
func storeSum(r *exec.Request, t engine.Txn, item engine.Item, found bool, sum summer, o *incrOptions, at int64) bool {
	key, until := r.Args[1], int64(0)
	if found {
		until = item.ExpireAt()
	}
	had := until != 0
	sets := o.given && (!o.ifUnset || !had)
	if sets {
		until = at
	}
	if sets && at <= r.Now { // EXAT in the past
		remove(r, t)
		return true
	}
	if o.persist {
		until = 0
	}
	if err := t.Set(key, sum.appendText(r.Worker.Number[:0]), engine.TypeString, until); err != nil {
		r.ReplyStoreError(err)
		return false
	}
	r.Notify(keyevent.String, sum.event(), key)
	switch {
	case sets:
		r.Notify(keyevent.Generic, "expire", key)
	case o.persist && had:
		r.Notify(keyevent.Generic, "persist", key)
	}
	return true
}

// summer adds an increment to a number within bounds.
type summer interface {
	// parse reads the increment and the bounds. It returns the text of an error, or "".
	parse(o *incrOptions) (refusal string)
	// add adds to the number that a key holds, or to 0. Without saturate a sum out of bounds does not
	// apply: it is the old number then.
	add(old []byte, found, saturate bool) (applies bool, refusal string)
	// appendReply appends the sum, and by how much it differs from the old number.
	appendReply(dst []byte, v resp.Version) []byte
	appendText(dst []byte) []byte
	event() string
}

// intSum is a summer of integers.
type intSum struct{ by, lower, upper, sum, applied int64 }

func (s *intSum) event() string { return "incrby" }

func (s *intSum) parse(o *incrOptions) (refusal string) {
	*s = intSum{by: 1, lower: math.MinInt64, upper: math.MaxInt64}
	for _, operand := range []struct {
		name string
		text []byte
		n    *int64
	}{{"Increment", o.byInt, &s.by}, {"LBOUND", o.lower, &s.lower}, {"UBOUND", o.upper, &s.upper}} {
		if operand.text == nil {
			continue
		}
		n, ok := resp.ParseInt(operand.text)
		if !ok {
			return "ERR " + operand.name + " is not an integer or out of range"
		}
		*operand.n = n
	}
	if s.lower > s.upper {
		return errBounds
	}
	return ""
}

func (s *intSum) add(old []byte, found, saturate bool) (applies bool, refusal string) {
	n := int64(0)
	if found {
		var ok bool
		if n, ok = resp.ParseInt(old); !ok {
			return false, exec.ErrNotInteger
		}
	}
	sum, overflows := n+s.by, s.by > 0 && n > math.MaxInt64-s.by || s.by < 0 && n < math.MinInt64-s.by
	switch {
	case overflows && s.by > 0 || !overflows && sum > s.upper:
		sum = s.upper
	case overflows || sum < s.lower:
		sum = s.lower
	default:
		s.sum, s.applied = sum, s.by
		return true, ""
	}
	if !saturate {
		s.sum, s.applied = n, 0
		return false, ""
	}
	s.sum, s.applied = sum, sum-n
	if (sum < n) != (s.applied < 0) {
		return false, errAppliedOverflow
	}
	return true, ""
}

func (s *intSum) appendReply(dst []byte, _ resp.Version) []byte {
	return resp.AppendInt(resp.AppendInt(dst, s.sum), s.applied)
}

func (s *intSum) appendText(dst []byte) []byte { return strconv.AppendInt(dst, s.sum, 10) }

// floatSum is a summer of floating-point numbers. Package longdouble has the arithmetic.
type floatSum struct{ by, lower, upper, sum, applied *big.Float }

func (s *floatSum) event() string { return "incrbyfloat" }

func (s *floatSum) parse(o *incrOptions) (refusal string) {
	s.lower, s.upper = new(big.Float).Neg(longdouble.Max()), longdouble.Max()
	for _, operand := range []struct {
		name string
		text []byte
		n    **big.Float
	}{{"Increment", o.byFloat, &s.by}, {"LBOUND", o.lower, &s.lower}, {"UBOUND", o.upper, &s.upper}} {
		if operand.text == nil {
			continue
		}
		n, infinite, ok := longdouble.Parse(operand.text)
		switch {
		case !ok:
			return "ERR " + operand.name + " is not a valid float"
		case infinite:
			n = new(big.Float).SetInf(operand.text[0] == '-')
		}
		*operand.n = n
	}
	switch {
	case s.by.IsInf():
		return errInfiniteIncrement
	case s.lower.Cmp(s.upper) > 0:
		return errBounds
	}
	return ""
}

func (s *floatSum) add(old []byte, found, saturate bool) (applies bool, refusal string) {
	n := newFloat()
	if found {
		var infinite, ok bool
		switch n, infinite, ok = longdouble.Parse(old); {
		case !ok:
			return false, errNotFloat
		case infinite:
			return false, errInfiniteValue
		}
	}
	sum := newFloat().Add(n, s.by)
	overflows := longdouble.Overflows(sum)
	switch {
	case sum.Cmp(s.upper) > 0 || overflows && sum.Sign() > 0:
		sum = s.upper
	case sum.Cmp(s.lower) < 0 || overflows:
		sum = s.lower
	default:
		s.sum, s.applied = sum, newFloat().Sub(sum, n)
		return true, ""
	}
	if !saturate {
		s.sum, s.applied = n, newFloat()
		return false, ""
	}
	s.sum = sum
	if s.applied = newFloat().Sub(sum, n); longdouble.Overflows(s.applied) {
		return false, errAppliedInfinity
	}
	return true, ""
}

func newFloat() *big.Float { return new(big.Float).SetPrec(longdouble.MantissaBits) }

// appendReply appends numbers as Redis writes a long double: all of its digits, in both protocols.
func (s *floatSum) appendReply(dst []byte, v resp.Version) []byte {
	for _, f := range []*big.Float{s.sum, s.applied} {
		text := longdouble.Append(nil, f)
		if v == resp.RESP3 {
			dst = append(append(append(dst, ','), text...), "\r\n"...)
		} else {
			dst = resp.AppendBulk(dst, text)
		}
	}
	return dst
}

func (s *floatSum) appendText(dst []byte) []byte { return longdouble.Append(dst, s.sum) }
