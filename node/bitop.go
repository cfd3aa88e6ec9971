package node

import (
	"crypto/subtle"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// combination is what BITOP makes of a first source and all others: the bits that are set …
type combination uint8

const (
	noCombination  combination = iota
	inAll                      // AND: in all
	inAny                      // OR: in some
	inOdd                      // XOR: in an odd number of them
	inNone                     // NOT: not in the first, the only one
	inFirstOnly                // DIFF: in the first and in no other
	inOthersOnly               // DIFF1: in others, but not in the first
	inFirstAndMore             // ANDOR: in the first and in another
	inOne                      // ONE: in one of all
)

var combinationNames = [...]string{inAll: "AND", inAny: "OR", inOdd: "XOR", inNone: "NOT",
	inFirstOnly: "DIFF", inOthersOnly: "DIFF1", inFirstAndMore: "ANDOR", inOne: "ONE"}

func combinationOf(arg []byte) combination {
	for op := inAll; int(op) < len(combinationNames); op++ {
		if is(arg, combinationNames[op]) {
			return op
		}
	}
	return noCombination
}

// combineTries is how often a result is made anew because its sources have other lengths each time.
const combineTries = 100

// combineStep is how many bytes of the result are made at a time, so that they stay in the processor's cache.
const combineStep = 16 << 10

// fill makes the result's bytes from at on. Behind its end a source has zeros.
func (op combination) fill(result []byte, sources [][]byte, at int) {
	var several []byte
	if op == inOne {
		several = make([]byte, min(len(result), combineStep))
	}
	for len(result) > 0 {
		step := result[:min(len(result), combineStep)]
		op.step(step, sources, at, several[:min(len(step), len(several))])
		result, at = result[len(step):], at+len(step)
	}
}

// step is fill for few bytes. several is room for what is in more than one source, as long as result.
func (op combination) step(result []byte, sources [][]byte, at int, several []byte) {
	first := behind(sources[0], at, len(result))
	if op == inOthersOnly || op == inFirstAndMore {
		clear(result)
	} else {
		clear(result[copy(result, first):])
	}
	clear(several)
	for _, s := range sources[1:] {
		s = behind(s, at, len(result))
		part := result[:len(s)]
		switch op {
		case inAll:
			andBytes(part, s)
			clear(result[len(s):])
		case inOdd:
			subtle.XORBytes(part, part, s)
		case inFirstOnly:
			andNotBytes(part, s)
		default:
			if op == inOne {
				addBoth(several, part, s)
			}
			orBytes(part, s)
		}
	}
	switch op {
	case inNone:
		for i := range result {
			result[i] = ^result[i]
		}
	case inOthersOnly:
		andNotBytes(result[:len(first)], first)
	case inFirstAndMore:
		andBytes(result[:len(first)], first)
		clear(result[len(first):])
	case inOne:
		andNotBytes(result, several)
	}
}

// addBoth adds to dst what is in both a and b, which are no longer.
func addBoth(dst, a, b []byte) {
	for i := range a {
		dst[i] |= a[i] & b[i]
	}
}

// behind is what a source has from a position on, n bytes at most.
func behind(source []byte, at, n int) []byte {
	source = source[min(at, len(source)):]
	return source[:min(n, len(source))]
}

// bitOp: BITOP AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE destination source...
func bitOp(r *request) {
	op := combinationOf(r.args[1])
	count := len(r.args) - 3
	switch {
	case op == noCombination:
		r.fail(errSyntax)
		return
	case op == inNone && count > 1:
		r.fail(errBitNot)
		return
	case count < 2 && (op == inFirstOnly || op == inOthersOnly || op == inFirstAndMore):
		r.fail("ERR BITOP " + combinationNames[op] + " must be called with at least two source keys.")
		return
	}
	t := r.lock()
	defer t.Unlock()
	length, ok := r.longest(t, r.args[3:])
	switch {
	case !ok:
	case length == 0:
		t.Delete(r.args[2])
		r.replyInt(0)
	case length*count > scanFrom && !r.holding:
		r.combineLarge(t, op, length)
	default:
		r.combine(t, op, length)
	}
}

// longest is the length of the longest string among the keys, all of which are looked up. ok is false if one is no string.
func (r *request) longest(t engine.Txn, keys [][]byte) (length int, ok bool) {
	for _, key := range keys {
		item, found, ok := r.findString(t, key)
		if !ok {
			return 0, false
		}
		if found {
			length = max(length, len(item.Value()))
		}
		if r.rewrite == nil { // not counted yet
			r.worker.count.lookup(found)
		}
	}
	return length, true
}

// combine makes the result here. It is a large one in a transaction only, which waits for no goroutine.
func (r *request) combine(t engine.Txn, op combination, length int) {
	w := r.worker
	if e := r.node.engine; length > scanFrom {
		if !e.Charge(int64(length)) {
			r.fail(errOOM)
			return
		}
		defer e.Refund(int64(length))
	}
	result := append(w.body[:0], make([]byte, length)...)
	r.fillNow(t, op, result)
	r.storeCombined(t.Set(r.args[2], result, engine.TypeString, 0), length)
	w.keepBody(result)
}

// fillNow makes the result from what the sources have now. They were looked up, so that to do so again removes none: all
// views stay what they are.
func (r *request) fillNow(t engine.Txn, op combination, result []byte) {
	views := r.worker.views[:0]
	for _, key := range r.args[3:] {
		var value []byte
		if item, found := t.Peek(key); found {
			value = item.Value()
		}
		views = append(views, value)
	}
	op.fill(result, views, 0)
	if clear(views); cap(views) <= maxViewsKept {
		r.worker.views = views
	}
}

func (r *request) storeCombined(err error, length int) {
	if err != nil {
		r.replyStoreError(err)
		return
	}
	r.replyInt(int64(length))
}

// combineLarge has a goroutine make the result, and stores it when it is there. If the sources have changed too often
// meanwhile, it is made once more in the memory that it has, while the lock is held.
func (r *request) combineLarge(t engine.Txn, op combination, length int) {
	w := r.rewrite
	switch {
	case w != nil && w.err != nil:
		r.replyStoreError(w.err)
		return
	case w != nil && w.tries >= combineTries:
		r.fail(errSourcesChange)
		return
	case w != nil && r.areSources(t, w.sources):
	case w != nil && w.tries >= rewriteTries && len(w.result()) == length:
		r.fillNow(t, op, w.result())
	default:
		r.combineLater(t, op, length)
		return
	}
	if w.staged.Live() {
		r.storeCombined(t.SetStaged(&w.staged, engine.TypeString, 0), length)
	} else {
		r.storeCombined(t.Set(r.args[2], w.small, engine.TypeString, 0), length)
	}
}

// areSources says whether the keys still have what a result was made from.
func (r *request) areSources(t engine.Txn, sources []source) bool {
	for i, key := range r.args[3:] {
		if item, found := t.Peek(key); !sources[i].isOf(item, found) {
			return false
		}
	}
	return true
}

func (r *request) combineLater(t engine.Txn, op combination, length int) {
	w := r.newRewrite()
	copied := 0
	for _, key := range r.args[3:] {
		item, found := t.Peek(key)
		s := sourceOf(t, item, found)
		w.sources = append(w.sources, s)
		if copied += len(s.small); copied > rewriteFrom && !w.charge(r.node.engine, len(s.small)) {
			w.drop()
			r.fail(errOOM)
			return
		}
	}
	w.start(r.conn, func(n *Node) error { return w.combine(n, op, length) })
}

// combine makes the result, outside the loops.
func (w *rewrite) combine(n *Node, op combination, length int) (err error) {
	views := make([][]byte, len(w.sources))
	for i := range w.sources {
		views[i] = w.sources[i].value()
	}
	if key := w.args[2]; n.engine.IsLarge(len(key), length) {
		w.staged, err = n.engine.Stage(key, length)
	} else {
		w.small = make([]byte, 0, length)
	}
	piece := make([]byte, min(length, combineStep))
	for at := 0; at < length && err == nil; at += len(piece) {
		piece = piece[:min(len(piece), length-at)]
		op.fill(piece, views, at)
		if w.staged.Live() {
			err = w.write(n, piece)
		} else {
			w.small = append(w.small, piece...)
		}
	}
	return err
}
