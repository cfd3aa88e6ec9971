package sortedsets

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/node/exec"
)

// result is members with scores that a command has gathered. It is on the Go heap and charged to the
// memory limit.
type result struct {
	heap    exec.Heap
	charged int64
	lost    bool // there was no memory for it

	text   []byte
	list   []scored
	index  map[string]int // of a union: where in list a member is
	sunk   int            // entries that order has dealt with
	isHeap bool           // list is a heap
}

// scored is a member and its score.
type scored struct {
	score  float64
	at, to int // in text
}

// memberCost is about what a member takes beside its bytes, with what is unused of slices and map.
const memberCost = 160

// charge takes memory for a member.
func (x *result) charge(n int) bool {
	cost := int64(memberCost + 4*n)
	if x.lost || !x.heap.Charge(cost) {
		x.lost = true
		return false
	}
	x.charged += cost
	return true
}

// add adds a member, which is copied. It returns false if there is no memory for it.
func (x *result) add(member []byte, score float64) bool {
	if !x.charge(len(member)) {
		return false
	}
	at := len(x.text)
	x.text = append(x.text, member...)
	if x.index != nil {
		x.index[string(member)] = len(x.list)
	}
	x.list = append(x.list, scored{score, at, len(x.text)})
	return true
}

func (x *result) member(s scored) []byte { return x.text[s.at:s.to:s.to] }

// End gives the memory back.
func (x *result) End() {
	if x.charged > 0 {
		x.heap.Refund(x.charged)
	}
	*x = result{heap: x.heap, lost: x.lost}
}

// less is the order of a sorted set.
func (x *result) less(a, b scored) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return bytes.Compare(x.member(a), x.member(b)) < 0
}

// order makes a heap of the list, some steps of it, and reports whether it is done. Then first takes
// the members in order. So nothing sorts a long list in one piece.
func (x *result) order(steps int) (done bool) {
	parents := len(x.list) / 2
	for ; steps > 0 && !x.isHeap; steps-- {
		if x.sunk == parents {
			x.isHeap = true
			break
		}
		x.sunk++
		x.sink(parents - x.sunk)
	}
	return x.isHeap
}

// sink moves an entry down to its place in the heap.
func (x *result) sink(i int) {
	list := x.list
	for {
		child := 2*i + 1
		if child >= len(list) {
			return
		}
		if child+1 < len(list) && x.less(list[child+1], list[child]) {
			child++
		}
		if !x.less(list[child], list[i]) {
			return
		}
		list[i], list[child] = list[child], list[i]
		i = child
	}
}

// first takes the first member out of the heap.
func (x *result) first() (s scored) {
	s = x.list[0]
	last := len(x.list) - 1
	x.list[0] = x.list[last]
	x.list = x.list[:last]
	x.sink(0)
	return s
}
