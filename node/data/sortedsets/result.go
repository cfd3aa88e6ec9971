package sortedsets

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/node/exec"
)

// Result is members with scores that a command has gathered. It is on the Go heap and charged to
// the memory limit.
type Result struct {
	heap    exec.Heap
	charged int64
	lost    bool // there was no memory for it

	text    []byte // where members' bytes go
	list    scoredList
	byPlace bool           // equal scores stay in the order in which they were added
	index   map[string]int // of a union: where in list a member is
	sunk    int            // entries that Order has dealt with
	isHeap  bool           // list is a heap
}

// textPiece is how many bytes of members share an allocation.
const textPiece = 64 << 10

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
	if x.index != nil {
		x.index[string(member)] = x.list.length
	}
	x.list.add(Scored{Score: score, member: x.keep(member), place: x.list.length})
	return true
}

// keep returns a copy of a member. The first piece of text grows, and the others are whole, so that
// no copy is longer than a piece.
func (x *Result) keep(member []byte) []byte {
	if room := cap(x.text) - len(x.text); room < len(member) {
		x.text = make([]byte, 0, max(len(member), min(textPiece, 2*cap(x.text))))
	}
	at := len(x.text)
	x.text = append(x.text, member...)
	return x.text[at:len(x.text):len(x.text)]
}

// Member is the name of a member, valid until End.
func (x *Result) Member(s Scored) []byte { return s.member }

// NewResult is an empty result that is in the order of a sorted set.
func NewResult(heap exec.Heap) *Result { return &Result{heap: heap} }

// NewFound is an empty result of places, which are ordered by their scores, and those with equal
// scores as they were added.
func NewFound(heap exec.Heap) *Result { return &Result{heap: heap, byPlace: true} }

// AddFound adds a place with the score by which it is ordered. It returns false if there is no
// memory for it.
func (x *Result) AddFound(member []byte, score, hash float64) bool {
	if !x.Add(member, score) {
		return false
	}
	x.list.at(x.list.length - 1).Hash = hash
	return true
}

// Len is how many members there are.
func (x *Result) Len() int { return x.list.length }

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
func (x *Result) less(a, b *Scored) bool {
	if a.Score != b.Score {
		return a.Score < b.Score
	}
	if x.byPlace {
		return a.place < b.place
	}
	return bytes.Compare(a.member, b.member) < 0
}

// Order makes a heap of the list, some steps of it, and reports whether it is done. Then First
// takes the members in order. So nothing sorts a long list in one piece.
func (x *Result) Order(steps int) (done bool) {
	parents := x.list.length / 2
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
	at := x.list.at
	for {
		child := 2*i + 1
		if child >= x.list.length {
			return
		}
		if child+1 < x.list.length && x.less(at(child+1), at(child)) {
			child++
		}
		if !x.less(at(child), at(i)) {
			return
		}
		*at(i), *at(child) = *at(child), *at(i)
		i = child
	}
}

// First takes the first member out of the heap.
func (x *Result) First() (s Scored) {
	first := x.list.at(0)
	s = *first
	x.list.length--
	*first = *x.list.at(x.list.length)
	x.sink(0)
	return s
}
