package node

import (
	"math/bits"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
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
		case is(arg, "LEN"):
			o.length = true
		case is(arg, "IDX"):
			o.ranges = true
		case is(arg, "WITHMATCHLEN"):
			o.withMatchLen = true
		case is(arg, "MINMATCHLEN") && i+1 < len(args):
			i++
			n, ok := resp.ParseInt(args[i])
			if !ok {
				return errNotInteger
			}
			o.leastMatch = n
		default:
			return errSyntax
		}
	}
	if o.length && o.ranges {
		return errLCSBoth
	}
	return ""
}

// maxLCSNow is how long an LCS may take on the loop, in steps of about a nanosecond.
const maxLCSNow = 50_000

// lcsUncharged is how much memory is not worth to be charged for a moment.
const lcsUncharged = 1 << 20

// lcsCells is how many pairs of positions two strings may have: Redis has four bytes for each.
const lcsCells = maxString / 4

// lcs: LCS key1 key2 [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]
func lcs(r *request) {
	t := r.lock()
	defer t.Unlock()
	for _, key := range r.args[1:3] {
		item, found := r.find(t, key)
		r.worker.count.lookup(found)
		if found && item.Type() != engine.TypeString {
			r.fail(errLCSType)
			return
		}
	}
	var o lcsOptions
	if refusal := o.parse(r.args[3:]); refusal != "" {
		r.fail(refusal)
		return
	}
	// Both were looked up: this removes none any more.
	a, foundA := t.Peek(r.args[1])
	b, foundB := t.Peek(r.args[2])
	var s subsequence
	if foundA {
		s.a = a.Value()
	}
	if foundB {
		s.b = b.Value()
	}
	switch {
	case (len(s.a)+1)*(len(s.b)+1) > lcsCells:
		r.fail(errLCSTooLong)
	case s.steps() <= maxLCSNow || r.holding:
		r.lcsNow(&s, &o)
	default:
		r.lcsLater(o, sourceOf(t, a, foundA), sourceOf(t, b, foundB))
	}
}

// lcsNow answers here. That takes long in a transaction only, which waits for no goroutine: 25 ms at most.
func (r *request) lcsNow(s *subsequence, o *lcsOptions) {
	memory, e := s.memory(o), r.node.engine
	if memory > lcsUncharged {
		if !e.Charge(memory) {
			r.fail(errLCSMemory)
			return
		}
		defer e.Refund(memory)
	}
	if reply := s.reply(o, r.version()); r.room(len(reply)) {
		r.out = append(r.out, reply...)
	}
}

// lcsLater has a goroutine answer. Only one of a node works at a time: it may need 34 MB.
func (r *request) lcsLater(o lcsOptions, a, b source) {
	n, version := r.node, r.version()
	r.answerLater(func() []byte {
		n.lcsTurn.Lock()
		defer n.lcsTurn.Unlock()
		defer a.drop()
		defer b.drop()
		s := subsequence{a: a.value(), b: b.value()}
		memory := s.memory(&o)
		if n.ctx.Err() != nil || !n.engine.Charge(memory) {
			return resp.AppendError(nil, errLCSMemory)
		}
		defer n.engine.Refund(memory)
		return s.reply(&o, version)
	})
}

// subsequence finds the longest common subsequence of two strings. Of Redis's table of lengths, D[i][j] for the first i bytes
// of one and the first j of the other, it has only where neighbours in a row differ, one bit for each cell, and makes 64 cells
// at a time: Hyyrö, "Bit-parallel LCS-length computation revisited", 2004. The rows are those of the shorter string.
type subsequence struct {
	a, b  []byte
	words int      // of a row
	rows  []uint64 // bit j-1 of row i-1: D[i][j] is one more than D[i][j-1]
}

func (s *subsequence) short() []byte {
	if len(s.b) < len(s.a) {
		return s.b
	}
	return s.a
}

func (s *subsequence) long() []byte {
	if len(s.b) < len(s.a) {
		return s.a
	}
	return s.b
}

// steps is about how many nanoseconds it will take.
func (s *subsequence) steps() int {
	return len(s.a) + len(s.b) + len(s.a)*len(s.b)/32
}

// memory is about how many bytes it will take.
func (s *subsequence) memory(o *lcsOptions) int64 {
	row := int64(len(s.long())+63) / 64 * 8
	masks := row * int64(min(len(s.short()), 256))
	if o.length {
		return masks + row
	}
	return masks + row*int64(len(s.short())+1)
}

// solve computes the rows, or only the last one if all is false, and returns the length.
func (s *subsequence) solve(all bool) (length int) {
	short, long := s.short(), s.long()
	s.words = (len(long) + 63) / 64
	masks := s.masks()
	if all {
		s.rows = make([]uint64, len(short)*s.words)
	}
	v := make([]uint64, s.words) // the complement of a row
	for j := range v {
		v[j] = ^uint64(0)
	}
	for i, c := range short {
		mask, carry := masks[c], uint64(0)
		for j, x := range v {
			u := x & mask[j]
			var sum uint64
			sum, carry = bits.Add64(x, u, carry)
			v[j] = sum | x&^u
		}
		if all {
			row := s.row(i)
			for j, x := range v {
				row[j] = ^x
			}
		}
	}
	for j := range v {
		v[j] = ^v[j]
	}
	return ones(v, len(long))
}

// masks are, for each byte of the shorter string, where it is in the longer one.
func (s *subsequence) masks() (masks [256][]uint64) {
	for _, c := range s.short() {
		if masks[c] == nil {
			masks[c] = make([]uint64, s.words)
		}
	}
	for j, c := range s.long() {
		if mask := masks[c]; mask != nil {
			mask[j/64] |= 1 << (j % 64)
		}
	}
	return masks
}

func (s *subsequence) row(i int) []uint64 { return s.rows[i*s.words : (i+1)*s.words] }

// ones is how many of the first n bits of a row are set: D[i][n].
func ones(row []uint64, n int) (sum int) {
	for _, x := range row[:n/64] {
		sum += bits.OnesCount64(x)
	}
	if n%64 != 0 {
		sum += bits.OnesCount64(row[n/64] << (64 - n%64))
	}
	return sum
}

// match is a run of bytes that both strings have, from a position of each on.
type match struct{ a, b, length int }

// walk goes from the end of both strings to a beginning.
type walk struct {
	*subsequence
	i, j        int // in the shorter and in the longer string
	here, above int // D[i][j], D[i-1][j]
}

// rise is how much D[i][j] is more than D[i][j-1].
func (w *walk) rise(i int) int {
	if i == 0 {
		return 0
	}
	return int(w.row(i - 1)[(w.j-1)/64] >> ((w.j - 1) % 64) & 1)
}

func (w *walk) left() {
	w.here -= w.rise(w.i)
	w.above -= w.rise(w.i - 1)
	w.j--
}

func (w *walk) up() {
	w.here, w.above = w.above, 0
	if w.i--; w.i > 1 {
		w.above = ones(w.row(w.i-2), w.j)
	}
}

// matches are the runs on the way that Redis goes where it has a choice, the last one first.
func (s *subsequence) matches(length int) (all []match) {
	swapped := len(s.b) < len(s.a)
	w := walk{subsequence: s, i: len(s.short()), j: len(s.long()), here: length}
	if w.i > 1 {
		w.above = ones(s.row(w.i-2), w.j)
	}
	for running := false; w.i > 0 && w.j > 0; {
		same := s.short()[w.i-1] == s.long()[w.j-1]
		switch before := w.here - w.rise(w.i); {
		case same:
			w.left()
			w.up()
			if !running {
				all = append(all, match{})
			}
			last := &all[len(all)-1]
			last.a, last.b, last.length = w.i, w.j, last.length+1
		case before > w.above || before == w.above && !swapped:
			w.left()
		default:
			w.up()
		}
		running = same
	}
	if swapped {
		for i := range all {
			all[i].a, all[i].b = all[i].b, all[i].a
		}
	}
	return all
}

// reply is the reply to an LCS.
func (s *subsequence) reply(o *lcsOptions, v resp.Version) []byte {
	length := s.solve(!o.length)
	if o.length {
		return resp.AppendInt(nil, int64(length))
	}
	all := s.matches(length)
	if !o.ranges {
		text := make([]byte, 0, length)
		for _, m := range slices.Backward(all) {
			text = append(text, s.a[m.a:m.a+m.length]...)
		}
		return resp.AppendBulk(nil, text)
	}
	all = slices.DeleteFunc(all, func(m match) bool { return int64(m.length) < o.leastMatch })
	out := resp.AppendMap(nil, v, 2)
	out = resp.AppendArray(resp.AppendBulkString(out, "matches"), len(all))
	for _, m := range all {
		out = m.append(out, o.withMatchLen)
	}
	return resp.AppendInt(resp.AppendBulkString(out, "len"), int64(length))
}

func (m match) append(out []byte, withLength bool) []byte {
	if withLength {
		out = resp.AppendArray(out, 3)
	} else {
		out = resp.AppendArray(out, 2)
	}
	for _, begin := range [...]int{m.a, m.b} {
		out = resp.AppendArray(out, 2)
		out = resp.AppendInt(out, int64(begin))
		out = resp.AppendInt(out, int64(begin+m.length-1))
	}
	if withLength {
		out = resp.AppendInt(out, int64(m.length))
	}
	return out
}
