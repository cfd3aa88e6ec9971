package shape

import (
	"bytes"
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// Limits of a tree.
const (
	maxLeaf       = maxBlock // bytes of a leaf
	maxRankedLeaf = 2000     // of a ranked one: it is changed in its middle
	mostInLeaf    = 512      // entries
	maxInRanked   = 191      // bytes of a string in a ranked leaf
	fan           = 60       // children of a node
	maxHeight     = 12

	leafFront = rankFront + tagFront // of a ranked leaf's slots
	leafLead  = 4                    // of a ranked leaf: the number of its parent
)

// Tree is a sequence of entries in a value with parts: a counted B+ tree. Leaves are blocks, parts of
// the plane Leaves; what is above them are nodes, parts of the plane Nodes. All name each other by
// number. A node has for each child how many entries are below it, so that a position is found, or
// the position of an entry.
//
//	                 root: child, 830 │ child, 611 │ child, 702          node: 4 bytes a child,
//	                         │            │            │                       4 for the count,
//	          child, 97 │ child, 120 ...  ▼            ▼                       8 for the rank
//	            ▼            ▼
//	leaf:  rank, string │ rank, string │ ...                             block
//
// In a ranked tree entries are in the order of their rank, and of their first strings where ranks
// are equal, and an index finds them by their first string (leaf_index.go). Leaves and nodes know
// their parents, so the way from the root to an entry is found from its leaf (tree_spot.go). In any
// other tree entries stand where they are inserted.
//
// A Tree is a small value, made by the type of the value for each command.
type Tree struct {
	V      engine.Parts
	Pin    *engine.ValuePin // not nil: the tree is read as it was when the value was pinned
	Leaves int              // the plane of the leaves
	Nodes  int              // the plane of the nodes
	Index  int              // the plane of the index, if the tree is ranked
	Away   int              // the plane of strings too long for a leaf; other shapes of the value may share it
	Own    int              // where in the value's own bytes the tree's TreeOwn bytes begin
	Items  int              // strings of an entry
	Ranked bool
	Moves  bool // what is inserted is then removed elsewhere in the tree, which does not grow

	bulk *Work // not nil: between ReserveAt and Settle
}

// TreeOwn is how many own bytes a value needs for a tree. They are zeros at first.
const TreeOwn = 24

// treeState is the own bytes of a tree.
//
//	count │ root │ bytes of all leaves' entries │ height │ swept │ stale
//	  4      4                 8                    1        3       4
//
// A tree of height 0 has one leaf, its root, or none if it is empty. The last two are of a ranked
// tree (tree_tombstones.go).
type treeState []byte

func (s treeState) count() int     { return int(binary.LittleEndian.Uint32(s)) }
func (s treeState) root() int      { return int(binary.LittleEndian.Uint32(s[4:])) }
func (s treeState) bytes() int     { return int(binary.LittleEndian.Uint64(s[8:])) }
func (s treeState) height() int    { return int(s[16]) }
func (s treeState) addCount(n int) { binary.LittleEndian.PutUint32(s, uint32(s.count()+n)) }
func (s treeState) addBytes(n int) { binary.LittleEndian.PutUint64(s[8:], uint64(s.bytes()+n)) }
func (s treeState) setRoot(n, height int) {
	binary.LittleEndian.PutUint32(s[4:], uint32(n))
	s[16] = byte(height)
}

const (
	sweptAt = 17
	staleAt = 20
)

func (t *Tree) state() treeState { return treeState(ownBytes(t.V, t.Pin)[t.Own : t.Own+TreeOwn]) }

func (t *Tree) part(plane, number int) []byte { return partOf(t.V, t.Pin, plane, number) }

// TreeLen is Tree.Len, by the own bytes of a value whose tree has its own ones first.
func TreeLen(own []byte) int { return treeState(own).count() }

// Len is how many entries the tree has.
func (t *Tree) Len() int { return t.state().count() }

// Bytes is how many bytes the entries take in their leaves.
func (t *Tree) Bytes() int { return t.state().bytes() }

// node is a node of a tree: how many children it has (2 bytes), how long their entries are (1), in
// a ranked tree the number of its parent (4), and the entries.
type node []byte

const (
	nodeHead = 8
	plainLen = 8
	rankLen  = 16
)

func (n node) count() int         { return int(binary.LittleEndian.Uint16(n)) }
func (n node) setCount(c int)     { binary.LittleEndian.PutUint16(n, uint16(c)) }
func (n node) parent() int        { return int(binary.LittleEndian.Uint32(n[4:])) }
func (n node) setParent(p int)    { binary.LittleEndian.PutUint32(n[4:], uint32(p)) }
func (n node) width() int         { return int(n[2]) }
func (n node) entry(i int) []byte { return n[nodeHead+i*n.width():][:n.width()] }
func (n node) child(i int) int    { return int(binary.LittleEndian.Uint32(n.entry(i))) }
func (n node) weight(i int) int   { return int(binary.LittleEndian.Uint32(n.entry(i)[4:])) }
func (n node) addWeight(i, by int) {
	binary.LittleEndian.PutUint32(n.entry(i)[4:], uint32(n.weight(i)+by))
}

// rank is at most that of the first entry below child i, and at least that of the last one below
// child i-1. That of child 0 means nothing.
func (n node) rank(i int) uint64 { return binary.LittleEndian.Uint64(n.entry(i)[plainLen:]) }

// put writes the i-th entry.
func (n node) put(i, child, weight int, rank uint64) {
	e := n.entry(i)
	binary.LittleEndian.PutUint32(e, uint32(child))
	binary.LittleEndian.PutUint32(e[4:], uint32(weight))
	if len(e) > plainLen {
		binary.LittleEndian.PutUint64(e[plainLen:], rank)
	}
}

// total is how many entries are below the node.
func (n node) total() (sum int) {
	for i := range n.count() {
		sum += n.weight(i)
	}
	return sum
}

func (t *Tree) width() int {
	if t.Ranked {
		return rankLen
	}
	return plainLen
}

func (t *Tree) front() int {
	if t.Ranked {
		return leafFront
	}
	return 0
}

func (t *Tree) maxLeaf() int {
	if t.Ranked {
		return maxRankedLeaf
	}
	return maxLeaf
}

// way leads from the root to an entry: through which child of which node, to which leaf, and the
// entry's number there.
type way struct {
	nodes  [maxHeight]turn
	height int
	leaf   int
	entry  int
}

type turn struct{ node, child int }

func (w *way) add(node, child int) {
	w.nodes[w.height] = turn{node, child}
	w.height++
}

// to is the way to a position. That of Len leads behind the last entry.
func (t *Tree) to(position int) (w way) {
	s := t.state()
	number, total := s.root(), s.count()
	for range s.height() {
		n := node(t.part(t.Nodes, number))
		i, before := n.at(position, total)
		position -= before
		w.add(number, i)
		number, total = n.child(i), n.weight(i)
	}
	w.leaf, w.entry = number, position
	return w
}

// at is the child that has a position of the total below the node, and how many are in front of that
// child. It looks from the nearer end, so that both ends of a list are found at once.
func (n node) at(position, total int) (child, before int) {
	last := n.count() - 1
	if position > total/2 {
		for child, before = last, total; child > 0; child-- {
			if before -= n.weight(child); position >= before {
				return child, before
			}
		}
		return 0, 0
	}
	for child < last {
		weight := n.weight(child)
		if position < before+weight {
			break
		}
		before += weight
		child++
	}
	return child, before
}

// position is where the way leads to.
func (t *Tree) position(w *way) (position int) {
	for _, x := range w.nodes[:w.height] {
		n := node(t.part(t.Nodes, x.node))
		for at, i := nodeHead+4, 0; i < x.child; at, i = at+n.width(), i+1 {
			position += int(binary.LittleEndian.Uint32(n[at:]))
		}
	}
	return position + w.entry
}

// Find returns the position of the entry of a ranked tree with a rank and a first string, or where
// it would stand.
func (t *Tree) Find(rank uint64, first []byte) (position int, found bool) {
	if t.Len() == 0 {
		return 0, false
	}
	w, found := t.search(rank, first)
	return t.position(&w), found
}

// search is the way to an entry of a ranked tree, which has a leaf, or where it would stand.
func (t *Tree) search(rank uint64, first []byte) (w way, found bool) {
	s := t.state()
	number := s.root()
	for height := s.height(); height > 0; height-- {
		n := node(t.part(t.Nodes, number))
		i := t.childFor(n, height, rank, first)
		w.add(number, i)
		number = n.child(i)
	}
	w.leaf = number
	b := block(t.part(t.Leaves, number))
	w.entry, found = t.searchLeaf(b, rank, first)
	return w, found
}

// childFor is the last child of a node whose first entry is not behind an entry.
func (t *Tree) childFor(n node, height int, rank uint64, first []byte) int {
	low, high := 0, n.count()-1 // the child is in here
	for low < high {
		middle := (low + high + 1) / 2
		r := n.rank(middle)
		if r > rank || r == rank && t.compareFirst(n.child(middle), height-1, rank, first) > 0 {
			high = middle - 1
		} else {
			low = middle
		}
	}
	return low
}

// compareFirst compares the first entry below a node or leaf with an entry.
func (t *Tree) compareFirst(number, height int, rank uint64, first []byte) int {
	for ; height > 0; height-- {
		number = node(t.part(t.Nodes, number)).child(0)
	}
	b := block(t.part(t.Leaves, number))
	return t.compare(b, 0, rank, first)
}

func rankOf(b block, e int) uint64 { return binary.LittleEndian.Uint64(b.slot(e)) }

// compare compares an entry of a leaf with another one.
func (t *Tree) compare(b block, e int, rank uint64, first []byte) int {
	switch r := rankOf(b, e); {
	case r < rank:
		return -1
	case r > rank:
		return 1
	}
	var buf Decimal
	s := t.item(b, e, b.offset(e), 0)
	return bytes.Compare(s.Text(&buf), first)
}

// searchLeaf is the first entry of a leaf that is not in front of an entry.
func (t *Tree) searchLeaf(b block, rank uint64, first []byte) (e int, found bool) {
	low, high := 0, b.count()
	for low < high {
		middle := (low + high) / 2
		c := t.compare(b, middle, rank, first)
		if c == 0 {
			return middle, true
		}
		if c < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, false
}

// item is the i-th string of an entry whose bytes begin at off.
func (t *Tree) item(b block, e, off, i int) Item {
	code, raw := b.item(e, off, i)
	if code == codeAway {
		raw = awayString(t.part(t.Away, int(binary.LittleEndian.Uint32(raw))))
	}
	return Item{code, raw}
}

// Entry is what a tree has at a position. Its items are views, valid until the next call that may
// change the value.
type Entry struct {
	Rank   uint64 // of a ranked tree
	First  Item
	Second Item // of a tree of two items
}

func (t *Tree) entry(b block, e, off int) (x Entry) {
	if t.Ranked {
		x.Rank = rankOf(b, e)
	}
	x.First = t.item(b, e, off, 0)
	if t.Items > 1 {
		x.Second = t.item(b, e, off, 1)
	}
	return x
}

// At is the entry at a position, which is below Len.
func (t *Tree) At(position int) Entry {
	w := t.to(position)
	b := block(t.part(t.Leaves, w.leaf))
	return t.entry(b, w.entry, b.offset(w.entry))
}

// Walk calls f for the entries from a position on, until it returns false. It returns the position
// where it has stopped: Len if there are no more. Leaves that it has passed are not read again from
// the same pin.
func (t *Tree) Walk(position int, f func(x Entry) bool) (next int) {
	for total := t.Len(); position < total; {
		w := t.to(position)
		b := block(t.part(t.Leaves, w.leaf))
		if t.Ranked && t.Items == 1 {
			walked := t.walkSingles(b, w.entry, f)
			if position += walked; w.entry+walked < b.count() {
				return position
			}
			t.passed(w.leaf)
			continue
		}
		for e, off := w.entry, b.offset(w.entry); e < b.count(); e++ {
			if !f(t.entry(b, e, off)) {
				return position
			}
			off += b.size(e)
			position++
		}
		t.passed(w.leaf)
	}
	return position
}

// walkSingles calls f for the entries of one item of a ranked leaf, from one on, until it returns false, and returns
// for how many it has returned true. It is what Walk does elsewhere, in half of the time.
func (t *Tree) walkSingles(b block, e int, f func(x Entry) bool) (walked int) {
	off := b.offset(e)
	last := len(b) - b.count()*(leafFront+1)
	for at := len(b) - (e+1)*(leafFront+1); at >= last; at -= leafFront + 1 {
		slot := b[at : at+leafFront+1 : at+leafFront+1]
		code := slot[leafFront]
		end := off + int(stored[code])
		x := Entry{Rank: binary.LittleEndian.Uint64(slot), First: Item{code, b[off:end:end]}}
		if code == codeAway {
			x.First.bytes = awayString(t.part(t.Away, int(binary.LittleEndian.Uint32(x.First.bytes))))
		}
		if !f(x) {
			break
		}
		off = end
		walked++
	}
	return walked
}

// WalkBack calls f for the entries in front of a position, the nearest first, until it returns
// false. It returns the position where it has stopped: 0 if there are no more. As to a pin see Walk.
func (t *Tree) WalkBack(position int, f func(x Entry) bool) (next int) {
	for position > 0 {
		w := t.to(position - 1)
		b := block(t.part(t.Leaves, w.leaf))
		for e, off := w.entry, b.offset(w.entry+1); e >= 0; e-- {
			off -= b.size(e)
			if !f(t.entry(b, e, off)) {
				return position
			}
			position--
		}
		t.passed(w.leaf)
	}
	return 0
}

func (t *Tree) passed(leaf int) {
	if t.Pin != nil {
		t.Pin.Done(t.Leaves, leaf)
	}
}
