package shape

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// Limits of an Ordered.
const (
	MaxOrderedKey   = 600
	MaxOrderedEntry = 900 // key and value together

	maxOrderedLeaf   = 2000
	maxOrderedNode   = 4000
	maxOrderedHeight = 20
)

// Ordered is a map from short strings to short strings in a value with parts, in the order of the keys'
// bytes: a B+ tree whose leaves and nodes are pages (ordered_page.go).
//
//	                node: "" ─> child │ "a9" ─> child │ "b" ─> child
//	                             │          │              │
//	leaf:   prefix "a": "1", value │ "17", value ...       ▼
//
// It does without ranks: nothing but the pages on the way to an entry changes with the entry, and mostly
// only its leaf. Keys that ascend at one place, or at several, leave full leaves.
//
// An Ordered is a small value, made by the type of the value for each command.
type Ordered struct {
	V      engine.Parts
	Pin    *engine.ValuePin // not nil: the map is read as it was when the value was pinned
	Leaves int              // the plane of the leaves
	Nodes  int              // the plane of the nodes
	Own    int              // where in the value's own bytes the map's OrderedOwn bytes begin
}

// OrderedOwn is how many own bytes a value needs for a map. They are zeros at first.
const OrderedOwn = stateMarks + markLen*OrderedMarks

// orderedState is the own bytes of a map: how many entries it has (8 bytes), the number of its root (4),
// its height (1), how often pages came and went (2), and its marks (ordered_mark.go). A map of height 0
// has one leaf, its root, or none if it is empty.
type orderedState []byte

const stateMarks = 16

func (s orderedState) count() int     { return int(binary.LittleEndian.Uint64(s)) }
func (s orderedState) addCount(n int) { binary.LittleEndian.PutUint64(s, uint64(s.count()+n)) }
func (s orderedState) root() int      { return int(binary.LittleEndian.Uint32(s[8:])) }
func (s orderedState) height() int    { return int(s[12]) }
func (s orderedState) turn() uint16   { return binary.LittleEndian.Uint16(s[14:]) }

// addTurn notes that a page came or went. A leaf may have got other keys, so no mark is good any more.
func (s orderedState) addTurn() {
	binary.LittleEndian.PutUint16(s[14:], s.turn()+1)
	clear(s[stateMarks:])
}

func (s orderedState) setRoot(n, height int) {
	binary.LittleEndian.PutUint32(s[8:], uint32(n))
	s[12] = byte(height)
}

func (o *Ordered) state() orderedState {
	return orderedState(ownBytes(o.V, o.Pin)[o.Own : o.Own+OrderedOwn])
}

// Len is how many entries the map has.
func (o *Ordered) Len() int { return o.state().count() }

func (o *Ordered) leaf(number int) page { return partOf(o.V, o.Pin, o.Leaves, number) }
func (o *Ordered) node(number int) page { return partOf(o.V, o.Pin, o.Nodes, number) }

// orderedWay leads from the root to an entry of a leaf, or where it would stand.
type orderedWay struct {
	nodes  [maxOrderedHeight]turn
	height int
	leaf   int
	entry  int
}

// search is the way to a key of a map that is not empty.
func (o *Ordered) search(w *orderedWay, key []byte) (found bool) {
	s := o.state()
	number := s.root()
	w.height = s.height()
	for i := range w.height {
		n := o.node(number)
		child := n.childFor(key)
		w.nodes[i] = turn{number, child}
		number = n.child(child)
	}
	w.leaf = number
	w.entry, found = o.leaf(number).search(key, 0)
	return found
}

// Get returns the value of a key: a view, valid until the next change.
func (o *Ordered) Get(key []byte) (value []byte, found bool) {
	s := o.state()
	if s.count() == 0 {
		return nil, false
	}
	number := s.root()
	for range s.height() {
		n := o.node(number)
		number = n.child(n.childFor(key))
	}
	p := o.leaf(number)
	e, found := p.search(key, 0)
	if !found {
		return nil, false
	}
	return p.value(e), true
}

// Edit is Get of a value that the caller writes to.
func (o *Ordered) Edit(key []byte) (value []byte, found bool) {
	if o.Len() == 0 {
		return nil, false
	}
	var w orderedWay
	if !o.search(&w, key) {
		return nil, false
	}
	return page(o.V.Edit(o.Leaves, w.leaf)).value(w.entry), true
}

// Cursor stands at an entry of an Ordered, or at none. It is void when the map changes.
type Cursor struct {
	o  Ordered
	w  orderedWay
	p  page // the leaf
	ok bool
}

// Seek returns a cursor at the first entry whose key is not below a key.
func (o *Ordered) Seek(key []byte) (c Cursor) {
	c.o = *o
	if c.o.Len() == 0 {
		return c
	}
	c.o.search(&c.w, key)
	c.p, c.ok = c.o.leaf(c.w.leaf), true
	if c.w.entry == c.p.count() {
		c.nextLeaf()
	}
	return c
}

// SeekBack returns a cursor at the last entry whose key is not above a key.
func (o *Ordered) SeekBack(key []byte) (c Cursor) {
	c.o = *o
	if c.o.Len() == 0 {
		return c
	}
	found := c.o.search(&c.w, key)
	c.p, c.ok = c.o.leaf(c.w.leaf), true
	if !found {
		c.Prev()
	}
	return c
}

// Valid reports whether the cursor stands at an entry.
func (c *Cursor) Valid() bool { return c.ok }

// AppendKey appends the key of the entry.
func (c *Cursor) AppendKey(dst []byte) []byte { return c.p.appendKey(dst, c.w.entry) }

// HasPrefix reports whether the cursor stands at an entry whose key begins with a string.
func (c *Cursor) HasPrefix(prefix []byte) bool {
	if !c.ok {
		return false
	}
	front := c.p.prefix()
	if len(prefix) <= len(front) {
		return string(front[:len(prefix)]) == string(prefix)
	}
	rest := c.p.rest(c.w.entry)
	n := len(front)
	return string(prefix[:n]) == string(front) && len(rest) >= len(prefix)-n && string(rest[:len(prefix)-n]) == string(prefix[n:])
}

// Value is the value of the entry: a view.
func (c *Cursor) Value() []byte { return c.p.value(c.w.entry) }

// Next goes on to the next entry.
func (c *Cursor) Next() {
	if c.w.entry++; c.w.entry >= c.p.count() {
		c.nextLeaf()
	}
}

// Prev goes back to the entry in front.
func (c *Cursor) Prev() {
	if c.w.entry--; c.w.entry < 0 {
		c.prevLeaf()
	}
}

func (c *Cursor) nextLeaf() {
	for level := c.w.height - 1; level >= 0; level-- {
		t := &c.w.nodes[level]
		if n := c.o.node(t.node); t.child+1 < n.count() {
			t.child++
			c.descend(level, n.child(t.child), false)
			return
		}
	}
	c.ok = false
}

func (c *Cursor) prevLeaf() {
	for level := c.w.height - 1; level >= 0; level-- {
		if t := &c.w.nodes[level]; t.child > 0 {
			t.child--
			c.descend(level, c.o.node(t.node).child(t.child), true)
			return
		}
	}
	c.ok = false
}

// descend goes to the first entry below a child at a level, or the last one.
func (c *Cursor) descend(level, number int, last bool) {
	for level++; level < c.w.height; level++ {
		n, child := c.o.node(number), 0
		if last {
			child = n.count() - 1
		}
		c.w.nodes[level] = turn{number, child}
		number = n.child(child)
	}
	c.w.leaf, c.p, c.w.entry = number, c.o.leaf(number), 0
	if last {
		c.w.entry = c.p.count() - 1
	}
}
