package sortedsets

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/node/exec"
)

// Result is members with scores that a command has gathered. It is on the Go heap and charged to the
// memory limit.
type Result struct {
	heap    exec.Heap
	charged int64
	lost    bool // there was no memory for it

	text    []byte
	list    []Scored
	byPlace bool           // equal scores stay in the order in which they were added
	index   map[string]int // of a union: where in list a member is
	sunk    int            // entries that Order has dealt with
	isHeap  bool           // list is a heap
}

// Scored is a member and its score.
type Scored struct {
	Score  float64
	Hash   float64 // of a place: the score that the member has in the searched set
	at, to int     // in text
	place  int     // how many were added before
}

// memberCost is about what a member takes beside its bytes, with what is unused of slices and map.
const memberCost = 160

// charge takes memory for a member.
func (x *Result) charge(n int) bool {
	cost := int64(memberCost + 4*n)
	if x.lost || !x.heap.Charge(cost) {
		x.lost = true
		return false
	}
	x.charged += cost
	return true
}

// Add adds a member, which is copied. It returns false if there is no memory for it.
func (x *Result) Add(member []byte, score float64) bool {
	if !x.charge(len(member)) {
		return false
	}
	at := len(x.text)
	x.text = append(x.text, member...)
	if x.index != nil {
		x.index[string(member)] = len(x.list)
	}
	x.list = append(x.list, Scored{Score: score, at: at, to: len(x.text), place: len(x.list)})
	return true
}

// Member is the name of a member, valid until End.
func (x *Result) Member(s Scored) []byte { return x.text[s.at:s.to:s.to] }

// NewResult is an empty result that is in the order of a sorted set.
func NewResult(heap exec.Heap) *Result { return &Result{heap: heap} }

// NewFound is an empty result of places, which are ordered by their scores, and those with equal
// scores as they were added.
func NewFound(heap exec.Heap) *Result { return &Result{heap: heap, byPlace: true} }

// AddFound adds a place with the score by which it is ordered. It returns false if there is no memory
// for it.
func (x *Result) AddFound(member []byte, score, hash float64) bool {
	if !x.Add(member, score) {
		return false
	}
	x.list[len(x.list)-1].Hash = hash
	return true
}

// Len is how many members there are.
func (x *Result) Len() int { return len(x.list) }

// Lost reports whether there was no memory for all of the result.
func (x *Result) Lost() bool { return x.lost }

// End gives the memory back.
func (x *Result) End() {
	if x.charged > 0 {
		x.heap.Refund(x.charged)
	}
	*x = Result{heap: x.heap, lost: x.lost, byPlace: x.byPlace}
}

// less is the order of a sorted set.
func (x *Result) less(a, b Scored) bool {
	if a.Score != b.Score {
		return a.Score < b.Score
	}
	if x.byPlace {
		return a.place < b.place
	}
	return bytes.Compare(x.Member(a), x.Member(b)) < 0
}

// Order makes a heap of the list, some steps of it, and reports whether it is done. Then First takes
// the members in order. So nothing sorts a long list in one piece.
func (x *Result) Order(steps int) (done bool) {
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
func (x *Result) sink(i int) {
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

// First takes the first member out of the heap.
func (x *Result) First() (s Scored) {
	s = x.list[0]
	last := len(x.list) - 1
	x.list[0] = x.list[last]
	x.list = x.list[:last]
	x.sink(0)
	return s
}
