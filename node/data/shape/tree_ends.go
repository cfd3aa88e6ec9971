package shape

// Most changes of a list are at its ends, and most of these change one leaf and the counts above
// it. They are done here in one way down. For that the leaves at the ends have some room, where the
// tree has more leaves than one: they grow by a quarter or endRoom, and shrink when half of them is
// unused.

// endRoom is how many bytes a leaf at an end gets at least when it grows. A leaf that grew by a quarter
// from its first entry on moved 18 times until it was full.
const endRoom = 512

// straight is a way down to be changed: the nodes themselves, which no call has moved meanwhile.
type straight struct {
	nodes    [maxStraight]node
	children [maxStraight]int
	height   int
	leaf     block
	entry    int
}

// maxStraight is the height of a tree of millions of leaves.
const maxStraight = 4

// straightTo is the way to a position of a tree that is not empty.
func (t *Tree) straightTo(w *straight, s treeState, position int) {
	number, total := s.root(), s.count()
	w.height = s.height()
	for i := range w.height {
		n := node(t.V.Edit(t.Nodes, number))
		child, before := n.at(position, total)
		position -= before
		w.nodes[i], w.children[i] = n, child
		number, total = n.child(child), n.weight(child)
	}
	w.leaf, w.entry = t.V.Edit(t.Leaves, number), position
}

// weigh notes that the leaf has so many entries more.
func (w *straight) weigh(entries int) {
	for i := range w.height {
		w.nodes[i].addWeight(w.children[i], entries)
	}
}

// insertAtOnce inserts an entry if its leaf has room for it, and reports whether it has.
func (t *Tree) insertAtOnce(position int, x *newEntry) bool {
	s := t.state()
	if s.count() == 0 || s.height() > maxStraight || x.probes[0].code == codeAway || x.probes[1].code == codeAway {
		return false
	}
	var w straight
	t.straightTo(&w, s, position)
	b := w.leaf
	if b.need()+b.slotLen()+x.size > min(len(b), t.maxLeaf()) || b.count() >= mostInLeaf {
		return false
	}
	slot, off := b.open(w.entry, x.size)
	putItems(b, slot, off, x.probes[:x.items])
	w.weigh(1)
	s.addCount(1)
	s.addBytes(x.size + len(slot))
	return true
}

// deleteAtOnce removes up to n entries from a position of a tree on, those of one leaf, if neither
// the leaf nor anything else is to move then. It returns how many it has removed, or 0.
func (t *Tree) deleteAtOnce(position, n int) int {
	s := t.state()
	atEnd := position == 0 || position+n >= s.count()
	if !atEnd || s.height() > maxStraight || t.Ranked {
		return 0
	}
	var w straight
	t.straightTo(&w, s, position)
	b := w.leaf
	to := min(w.entry+n, b.count())
	if to-w.entry == b.count() {
		return 0
	}
	off, removed := b.offset(w.entry), to-w.entry
	size, away := 0, false
	for e := w.entry; e < to; e++ {
		for _, code := range b.slot(e) {
			size += int(stored[code])
			away = away || code == codeAway
		}
	}
	left := b.need() - size - removed*b.slotLen()
	least := len(b) / 2
	if s.height() == 0 {
		least = len(b) - len(b)/4
	}
	if away || left < least {
		return 0
	}
	b.cut(w.entry, to, off, size)
	w.weigh(-removed)
	s.addCount(-removed)
	s.addBytes(-size - removed*b.slotLen())
	return removed
}

// spacious is how many bytes a leaf gets that needs so many for a new entry.
func (t *Tree) spacious(need int, x *newEntry) int {
	s := t.state()
	switch {
	case t.Ranked || x.position > 0 && x.position < s.count() || t.bulk != nil:
		return need
	case s.height() == 0:
		return min(need+need/8, t.maxLeaf())
	}
	return min(need+max(need/4, endRoom), t.maxLeaf())
}
