package shape

// Leaves and nodes are split when they are full, and merged with a neighbour when they have little.
// That changes nothing that can be seen. Nodes are split before the leaf below them, one at a time,
// so that each step takes its memory at once.

// nodeStep: nodes have room for a multiple of so many children.
const nodeStep = 12

func (t *Tree) nodeSize(children int) int {
	if t.bulk != nil {
		children = fan
	}
	return nodeHead + (children+nodeStep-1)/nodeStep*nodeStep*t.width()
}

// splitFor splits the leaf of a way to an entry that is to be inserted, or a node above it.
func (t *Tree) splitFor(w *way, b block) error {
	full := w.height
	for full > 0 && node(t.V.Part(t.Nodes, w.nodes[full-1].node)).count() == fan {
		full--
	}
	if full < w.height {
		return t.splitNode(w, full)
	}
	return t.splitLeaf(w, t.cutFor(w, b))
}

// cutFor is where a leaf is split: in its middle, but at the ends of the tree so that leaves stay
// full when all insertions are there.
func (t *Tree) cutFor(w *way, b block) int {
	first, last := w.entry == 0, w.entry == b.count()
	for _, x := range w.nodes[:w.height] {
		first = first && x.child == 0
		last = last && x.child == node(t.V.Part(t.Nodes, x.node)).count()-1
	}
	switch {
	case last:
		return b.count() - 1
	case first:
		return 1
	}
	half, size, cut := b.need()/2, 0, 0
	for ; cut < b.count()-1 && (size < half || cut == 0); cut++ {
		size += b.size(cut) + b.slotLen()
	}
	return cut
}

// splitLeaf gives the entries of a leaf from cut on to a new leaf behind it.
func (t *Tree) splitLeaf(w *way, cut int) error {
	b := block(t.V.Part(t.Leaves, w.leaf))
	moved := b.count() - cut
	size := b.begin() + moved*b.slotLen() + b.used() - b.offset(cut)
	if t.bulk != nil {
		size = t.maxLeaf()
	}
	if err := t.reserveSplit(w, w.height, size); err != nil {
		return err
	}
	number, part, err := t.V.Add(t.Leaves, size)
	if err != nil {
		return err
	}
	b = t.V.Edit(t.Leaves, w.leaf)
	to := t.initLeaf(part)
	rank, left := uint64(0), cut
	b.giveTail(to, cut)
	if t.Ranked {
		rank = rankOf(to, 0)
	}
	if err := t.addChild(w, w.height, w.leaf, number, left, moved, rank); err != nil {
		b = t.V.Edit(t.Leaves, w.leaf)
		b.take(to)
		t.V.Free(t.Leaves, number)
		return err
	}
	if t.Ranked {
		t.index().moveAll(t, to, w.leaf, number)
	}
	if t.bulk != nil {
		t.bulk.leaves = append(t.bulk.leaves, number)
	} else {
		fit(t.V, t.Leaves, w.leaf)
	}
	return nil
}

// reserveSplit reserves a part of size bytes, and what the node above needs for a child more: level
// is that of what is split, 0 for the root.
func (t *Tree) reserveSplit(w *way, level, size int) error {
	switch {
	case t.bulk != nil:
		return nil
	case level == 0:
		return t.V.Reserve(size, t.nodeSize(2))
	}
	above := node(t.V.Part(t.Nodes, w.nodes[level-1].node))
	if n := t.nodeSize(above.count() + 1); n > len(above) {
		return t.V.Reserve(size, n)
	}
	return t.V.Reserve(size)
}

// splitNode gives half of the children of a node, at a level of the way, to a new node behind it.
func (t *Tree) splitNode(w *way, level int) error {
	number := w.nodes[level].node
	n := node(t.V.Part(t.Nodes, number))
	kept := n.count() / 2
	moved := n.count() - kept
	if err := t.reserveSplit(w, level, t.nodeSize(moved)); err != nil {
		return err
	}
	added, part, err := t.V.Add(t.Nodes, t.nodeSize(moved))
	if err != nil {
		return err
	}
	n = t.V.Edit(t.Nodes, number)
	to := t.initNode(part)
	to.setCount(moved)
	copy(to[nodeHead:], n[nodeHead+kept*n.width():nodeHead+n.count()*n.width()])
	n.setCount(kept)
	rank := uint64(0)
	if t.Ranked {
		rank = to.rank(0)
	}
	if err := t.addChild(w, level, number, added, n.total(), to.total(), rank); err != nil {
		n = t.V.Edit(t.Nodes, number)
		n.setCount(kept + moved)
		t.V.Free(t.Nodes, added)
		return err
	}
	t.adopt(added, 0, level == w.height-1)
	if t.bulk == nil {
		_, _ = t.V.Resize(t.Nodes, number, t.nodeSize(kept)) // without memory it keeps its cell
	}
	return nil
}

func (t *Tree) initNode(b []byte) node {
	n := node(b)
	n.setCount(0)
	n[2] = byte(t.width())
	return n
}

// addChild has the node above a level know that a child was split: what is left of it, and what was
// added behind it, with how many entries each. There is a new root if the child was the root.
func (t *Tree) addChild(w *way, level, child, added, left, moved int, rank uint64) error {
	if level == 0 {
		number, part, err := t.V.Add(t.Nodes, t.nodeSize(2))
		if err != nil {
			return err
		}
		n := t.initNode(part)
		n.setCount(2)
		n.put(0, child, left, 0)
		n.put(1, added, moved, rank)
		isLeaf := t.state().height() == 0
		t.state().setRoot(number, t.state().height()+1)
		t.adopt(number, 0, isLeaf)
		return nil
	}
	above, i := w.nodes[level-1].node, w.nodes[level-1].child
	n := node(t.V.Edit(t.Nodes, above))
	if size := t.nodeSize(n.count() + 1); size > len(n) {
		part, err := t.V.Resize(t.Nodes, above, size)
		if err != nil {
			return err
		}
		n = part
	}
	at, width := nodeHead+(i+1)*n.width(), n.width()
	copy(n[at+width:], n[at:nodeHead+n.count()*width])
	n.setCount(n.count() + 1)
	n.addWeight(i, -moved)
	n.put(i+1, added, moved, rank)
	t.setParent(added, above, level == w.height)
	return nil
}

// adopt tells the children of a node, from one on, who their parent is.
func (t *Tree) adopt(number, from int, areLeaves bool) {
	n := node(t.V.Part(t.Nodes, number))
	for i := from; t.Ranked && i < n.count(); i++ {
		t.setParent(n.child(i), number, areLeaves)
	}
}

func (t *Tree) setParent(child, parent int, isLeaf bool) {
	switch {
	case !t.Ranked:
	case isLeaf:
		block(t.V.Edit(t.Leaves, child)).setParent(parent)
	default:
		node(t.V.Edit(t.Nodes, child)).setParent(parent)
	}
}

// dropChild takes a child, which is gone, out of the node at a level of the way.
func (t *Tree) dropChild(w *way, level, child int) {
	number := w.nodes[level].node
	n := node(t.V.Edit(t.Nodes, number))
	if n.count() == 1 {
		t.V.Free(t.Nodes, number)
		if level > 0 {
			t.dropChild(w, level-1, w.nodes[level-1].child)
		} else {
			t.state().setRoot(0, 0)
		}
		return
	}
	at := nodeHead + child*n.width()
	copy(n[at:], n[at+n.width():nodeHead+n.count()*n.width()])
	n.setCount(n.count() - 1)
	switch {
	case level > 0:
		t.mergeNode(w, level)
	case n.count() == 1:
		t.lower()
	}
}

// lower takes roots away that have one child.
func (t *Tree) lower() {
	for s := t.state(); s.height() > 0; {
		number := s.root()
		n := node(t.V.Part(t.Nodes, number))
		if n.count() > 1 {
			return
		}
		s.setRoot(n.child(0), s.height()-1)
		t.V.Free(t.Nodes, number)
	}
}

// mergeLeaf merges the leaf of a way with a neighbour if both have little, and reports whether it
// has. Without a free cell it does not.
func (t *Tree) mergeLeaf(w *way) bool {
	if w.height == 0 || block(t.V.Part(t.Leaves, w.leaf)).need() > t.maxLeaf()/4 {
		return false
	}
	level := w.height - 1
	above, i := node(t.V.Part(t.Nodes, w.nodes[level].node)), w.nodes[level].child
	for _, left := range [2]int{i - 1, i} {
		if left < 0 || left+1 >= above.count() {
			continue
		}
		a, b := block(t.V.Part(t.Leaves, above.child(left))), block(t.V.Part(t.Leaves, above.child(left+1)))
		size := a.need() + b.need() - b.begin()
		if size > t.maxLeaf()*3/4 || a.count()+b.count() > mostInLeaf*3/4 {
			continue
		}
		return t.joinLeaves(w, left, size)
	}
	return false
}

// joinLeaves merges two neighbours below the lowest node of a way into one leaf of size bytes.
func (t *Tree) joinLeaves(w *way, left, size int) bool {
	level := w.height - 1
	number := w.nodes[level].node
	above := node(t.V.Part(t.Nodes, number))
	into, from := above.child(left), above.child(left+1)
	b, ok := growFree(t.V, t.Leaves, into, size)
	if !ok {
		return false
	}
	if t.Ranked {
		t.index().moveAll(t, t.V.Part(t.Leaves, from), from, into)
	}
	b.take(t.V.Part(t.Leaves, from))
	t.V.Free(t.Leaves, from)
	above = t.V.Edit(t.Nodes, number)
	above.addWeight(left, above.weight(left+1))
	t.dropChild(w, level, left+1)
	return true
}

// mergeNode merges the node at a level of the way with a neighbour if both have few children.
func (t *Tree) mergeNode(w *way, level int) {
	number := w.nodes[level].node
	n := node(t.V.Part(t.Nodes, number))
	if n.count() > fan/4 {
		return
	}
	above, i := node(t.V.Part(t.Nodes, w.nodes[level-1].node)), w.nodes[level-1].child
	for _, left := range [2]int{i - 1, i} {
		if left < 0 || left+1 >= above.count() {
			continue
		}
		a, b := node(t.V.Part(t.Nodes, above.child(left))), node(t.V.Part(t.Nodes, above.child(left+1)))
		if a.count()+b.count() <= fan*3/4 {
			t.joinNodes(w, level, left)
			return
		}
	}
}

// joinNodes merges two neighbours below the node above a level of the way.
func (t *Tree) joinNodes(w *way, level, left int) {
	number := w.nodes[level-1].node
	above := node(t.V.Part(t.Nodes, number))
	into, from := above.child(left), above.child(left+1)
	count := node(t.V.Part(t.Nodes, into)).count()
	moved := node(t.V.Part(t.Nodes, from)).count()
	size := t.nodeSize(count + moved)
	part, err := t.V.Resize(t.Nodes, into, size)
	if err != nil {
		return
	}
	a, b := node(part), node(t.V.Part(t.Nodes, from))
	copy(a[nodeHead+count*a.width():], b[nodeHead:nodeHead+moved*b.width()])
	a.setCount(count + moved)
	above = t.V.Edit(t.Nodes, number)
	if t.Ranked {
		a.put(count, a.child(count), a.weight(count), above.rank(left+1))
	}
	t.adopt(into, count, level == w.height-1)
	above = t.V.Edit(t.Nodes, number)
	t.V.Free(t.Nodes, from)
	above.addWeight(left, above.weight(left+1))
	t.dropChild(w, level-1, left+1)
}
