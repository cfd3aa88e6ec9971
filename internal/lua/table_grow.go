package lua

import (
	"math"
	"math/bits"
)

// maxArrayBits bounds array parts to 2^26 elements.
const maxArrayBits = 26

// insert makes a place for a key that is not in t. A key whose main position is taken moves to a free
// place if the node there is in its own main position, and moves that node away otherwise.
func (t *Table) insert(key Value) *Value {
	if len(t.nodes) == 0 {
		return t.grow(key)
	}
	main := t.mainPosition(key)
	n := &t.nodes[main]
	if n.value.isNil() {
		n.key = key
		return &n.value
	}
	free := t.takeFree()
	if free < 0 {
		return t.grow(key)
	}
	other := t.mainPosition(n.key)
	f := &t.nodes[free]
	if other == main {
		f.key, f.next = key, n.next
		n.next = uint32(free) + 1
		return &f.value
	}
	walked := 1
	for t.nodes[other].next != main+1 {
		other = t.nodes[other].next - 1
		walked++
	}
	t.walked(walked, 0)
	t.nodes[other].next = uint32(free) + 1
	*f = *n
	*n = node{key: key}
	return &n.value
}

// takeFree is a node whose key was never set, or -1.
func (t *Table) takeFree() int {
	for t.lastFree > 0 {
		t.lastFree--
		if t.nodes[t.lastFree].key.isNil() {
			return t.lastFree
		}
	}
	return -1
}

// grow gives t the best sizes for what it holds and key, and makes a place for key.
func (t *Table) grow(key Value) *Value {
	var counts [maxArrayBits + 1]int // of the integer keys in (2^(i-1), 2^i]
	integers := t.countArray(&counts)
	total := integers
	for i := range t.nodes {
		if n := &t.nodes[i]; !n.value.isNil() {
			integers += countKey(n.key, &counts)
			total++
		}
	}
	integers += countKey(key, &counts)
	total++
	size, inArray := arraySize(&counts, integers)
	t.state.spend((len(t.array) + len(t.nodes)) / 2)
	t.resize(size, total-inArray)
	return t.place(key)
}

func (t *Table) countArray(counts *[maxArrayBits + 1]int) int {
	total := 0
	for i := range t.array {
		if !t.array[i].isNil() {
			counts[bits.Len(uint(i))]++
			total++
		}
	}
	return total
}

// countKey counts key if it can be in an array, and reports how many that is.
func countKey(key Value, counts *[maxArrayBits + 1]int) int {
	if !key.isNumber() {
		return 0
	}
	n := key.num()
	if n < 1 || n > 1<<maxArrayBits || n != math.Trunc(n) {
		return 0
	}
	counts[bits.Len(uint(n)-1)]++
	return 1
}

// arraySize is the largest power of two of which more than half would be in use, and how many keys that is.
func arraySize(counts *[maxArrayBits + 1]int, integers int) (size, used int) {
	sum := 0
	for i, power := 0, 1; power/2 < integers && i < len(counts); i, power = i+1, power*2 {
		sum += counts[i]
		if counts[i] > 0 && sum > power/2 {
			size, used = power, sum
		}
		if sum == integers {
			break
		}
	}
	return size, used
}

// resize gives t an array of size elements and a hash for at least fields keys.
func (t *Table) resize(size, fields int) {
	nodes := 0
	if fields > 0 {
		nodes = 1 << bits.Len(uint(fields-1))
	}
	t.state.charge((size-len(t.array))*valueSize + nodes*nodeSize)
	oldArray, oldNodes := t.array, t.nodes
	t.nodes, t.lastFree = nil, nodes
	if nodes > 0 {
		t.nodes = t.state.spare.take(nodes)
	}
	switch {
	case size > len(oldArray):
		t.array = make([]Value, size)
		copy(t.array, oldArray)
	case size < len(oldArray):
		t.array = append([]Value(nil), oldArray[:size]...)
		for i := size; i < len(oldArray); i++ {
			if v := oldArray[i]; !v.isNil() {
				*t.place(Number(float64(i + 1))) = v
			}
		}
	}
	for i := len(oldNodes) - 1; i >= 0; i-- {
		if n := &oldNodes[i]; !n.value.isNil() {
			*t.place(n.key) = n.value
		}
	}
	t.state.spare.give(oldNodes)
}

// spareNodes are what tables have outgrown: a table of five fields outgrows three lists of nodes. Their memory is not
// counted while they are here: it is little.
type spareNodes [4][]([]node) // by the logarithm of their length

// spares is how many lists of one length are kept.
const spares = 4

// take returns a list of n free nodes.
func (s *spareNodes) take(n int) []node {
	if i := bits.Len(uint(n)) - 1; i < len(s) {
		if last := len(s[i]) - 1; last >= 0 {
			nodes := s[i][last]
			s[i][last] = nil
			s[i] = s[i][:last]
			return nodes
		}
	}
	return make([]node, n)
}

// give gives a list of nodes back. Nobody may have a pointer to one of them.
func (s *spareNodes) give(nodes []node) {
	if i := bits.Len(uint(len(nodes))) - 1; i >= 0 && i < len(s) && len(s[i]) < spares {
		clear(nodes)
		s[i] = append(s[i], nodes)
	}
}

// reserveArray makes room for elements up to n at once, as a constructor does.
func (t *Table) reserveArray(n int) {
	if n > len(t.array) {
		t.resize(n, t.nodeCount())
	}
}

// nodeCount is the size that the hash part has.
func (t *Table) nodeCount() int { return len(t.nodes) }
