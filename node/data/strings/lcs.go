package strings

import (
	"context"
	"slices"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/lcs"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// lcsOptions are the options of LCS.
type lcsOptions struct {
	length, ranges bool // LEN, IDX; neither: the bytes
	leastMatch     int64
	withMatchLen   bool
}

// parse reads the options; refusal is the error.
func (o *lcsOptions) parse(args [][]byte) (refusal string) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case exec.Is(arg, "LEN"):
			o.length = true
		case exec.Is(arg, "IDX"):
			o.ranges = true
		case exec.Is(arg, "WITHMATCHLEN"):
			o.withMatchLen = true
		case exec.Is(arg, "MINMATCHLEN") && i+1 < len(args):
			i++
			n, ok := resp.ParseInt(args[i])
			if !ok {
				return exec.ErrNotInteger
			}
			o.leastMatch = n
		default:
			return exec.ErrSyntax
		}
	}
	if o.length && o.ranges {
		return errLCSBoth
	}
	return ""
}

// maxLCSNow limits an LCS on the loop, in steps of about a nanosecond.
const maxLCSNow = 50_000

// lcsUncharged is the memory, in bytes, that an LCS may use on the loop without charging it.
const lcsUncharged = 1 << 20

// lcsCells limits the product of the strings' lengths. Redis needs four bytes for each pair of
// positions, and limits their sum to proto-max-bulk-len.
const lcsCells = exec.MaxString / 4

// commonSubsequence: LCS key1 key2 [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]
func commonSubsequence(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	for _, key := range r.Args[1:3] {
		item, found := r.Find(t, key)
		r.Lookup(found, key)
		if found && item.Type() != engine.TypeString {
			r.Fail(errLCSType)
			return
		}
	}
	var o lcsOptions
	if refusal := o.parse(r.Args[3:]); refusal != "" {
		r.Fail(refusal)
		return
	}
	// Both were looked up above, which has removed expired keys: Peek changes nothing.
	a, foundA := t.Peek(r.Args[1])
	b, foundB := t.Peek(r.Args[2])
	var s lcs.Pair
	if foundA {
		s.A = a.Value()
	}
	if foundB {
		s.B = b.Value()
	}
	switch {
	case (len(s.A)+1)*(len(s.B)+1) > lcsCells:
		r.Fail(ErrLCSTooLong)
	case s.Steps() <= maxLCSNow:
		lcsNow(r, &s, &o)
	default:
		lcsLater(r, o, exec.SourceOf(t, a, foundA), exec.SourceOf(t, b, foundB))
	}
}

// lcsNow answers on the loop.
func lcsNow(r *exec.Request, s *lcs.Pair, o *lcsOptions) {
	memory, e := s.Memory(!o.length), r.Engine
	if memory > lcsUncharged {
		if !e.Charge(memory) {
			r.Fail(errLCSMemory)
			return
		}
		defer e.Refund(memory)
	}
	if reply := reply(s, o, r.Version()); r.Room(len(reply)) {
		r.Out = append(r.Out, reply...)
	}
}

// lcsTurn is held by the goroutine that works on an LCS: one at a time, because it can need 34 MB of
// the Go heap and a whole processor. Both are the process's, so the turn is too: the nodes of dunlin
// local share it.
var lcsTurn sync.Mutex

// lcsLater has a goroutine answer.
func lcsLater(r *exec.Request, o lcsOptions, a, b exec.Source) {
	e, version, heap, copied := r.Engine, r.Version(), r.Heap, int64(len(a.Small)+len(b.Small))
	if !heap.Charge(copied) {
		a.Drop()
		b.Drop()
		r.Fail(errLCSMemory)
		return
	}
	r.Host.AnswerLater(func(ctx context.Context) []byte {
		defer heap.Refund(copied)
		defer a.Drop()
		defer b.Drop()
		if ctx.Err() != nil {
			return nil
		}
		lcsTurn.Lock()
		defer lcsTurn.Unlock()
		s := lcs.Pair{A: a.Value(), B: b.Value()}
		memory := s.Memory(!o.length)
		if ctx.Err() != nil || !e.Charge(memory) {
			return resp.AppendError(nil, errLCSMemory)
		}
		defer e.Refund(memory)
		return reply(&s, &o, version)
	})
}

// reply returns the reply to an LCS.
func reply(s *lcs.Pair, o *lcsOptions, v resp.Version) []byte {
	length := s.Solve(!o.length)
	if o.length {
		return resp.AppendInt(nil, int64(length))
	}
	all := s.Matches(length)
	if !o.ranges {
		text := make([]byte, 0, length)
		for _, m := range slices.Backward(all) {
			text = append(text, s.A[m.A:m.A+m.Length]...)
		}
		return resp.AppendBulk(nil, text)
	}
	all = slices.DeleteFunc(all, func(m lcs.Match) bool { return int64(m.Length) < o.leastMatch })
	out := resp.AppendMap(nil, v, 2)
	out = resp.AppendArray(resp.AppendBulkString(out, "matches"), len(all))
	for _, m := range all {
		out = appendMatch(out, m, o.withMatchLen)
	}
	return resp.AppendInt(resp.AppendBulkString(out, "len"), int64(length))
}

// appendMatch appends a run as LCS IDX answers it.
func appendMatch(out []byte, m lcs.Match, withLength bool) []byte {
	if withLength {
		out = resp.AppendArray(out, 3)
	} else {
		out = resp.AppendArray(out, 2)
	}
	for _, begin := range [...]int{m.A, m.B} {
		out = resp.AppendArray(out, 2)
		out = resp.AppendInt(out, int64(begin))
		out = resp.AppendInt(out, int64(begin+m.Length-1))
	}
	if withLength {
		out = resp.AppendInt(out, int64(m.Length))
	}
	return out
}
