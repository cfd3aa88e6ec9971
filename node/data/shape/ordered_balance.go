package shape

// Pages are split when they are full, and merged with a neighbour when they have little. Nodes are split
// before what is below them, one at a time, so that each step takes its memory at once. A level counts
// from the root: the page at level w.height is the leaf.

// plane is the plane of the pages at a level of a way, and most how many bytes these may have.
func (o *Ordered) plane(w *orderedWay, level int) (plane, most int) {
	if level == w.height {
		return o.Leaves, maxOrderedLeaf
	}
	return o.Nodes, maxOrderedNode
}

// at is the number of the page at a level of a way.
func (w *orderedWay) at(level int) int {
	if level == w.height {
		return w.leaf
	}
	return w.nodes[level].node
}

// splitFor splits the leaf of a way for an entry, or a node above it. done: the entry has got a leaf of
// its own.
func (o *Ordered) splitFor(w *orderedWay, found bool, key, value []byte) (done bool, err error) {
	p := o.leaf(w.leaf)
	n, e := p.count(), w.entry
	outside := p.shared(key) < len(p.prefix())
	switch {
	case found:
	case e == n && (outside || p.hint() == n):
		return o.addSingle(w, key, value, true)
	case e == 0 && outside:
		return o.addSingle(w, key, value, false)
	case e > 0 && e < n && e == p.hint():
		var buf [MaxOrderedKey]byte
		return false, o.split(w, w.height, e, key, p.appendKey(buf[:0], e))
	}
	cut := p.middle()
	var left, right [MaxOrderedKey]byte
	return false, o.split(w, w.height, cut, p.appendKey(left[:0], cut-1), p.appendKey(right[:0], cut))
}

// middle is the entry at which a page is halved.
func (p page) middle() int {
	half, n := (p.front()+p.used())/2, p.count()
	low, high := 1, n-1
	for low < high {
		if middle := (low + high) / 2; p.begin(middle) < half {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// separator is the shortest beginning of right that is above left, which is below right.
func separator(left, right []byte) []byte { return right[:common(left, right)+1] }

// addSingle gives an entry that stands at an end of its full leaf a leaf of its own, next to that.
func (o *Ordered) addSingle(w *orderedWay, key, value []byte, behind bool) (done bool, err error) {
	p := o.leaf(w.leaf)
	var buf [MaxOrderedKey]byte
	var sep []byte
	if behind {
		sep = separator(p.appendKey(buf[:0], p.count()-1), key)
	} else {
		sep = separator(key, p.appendKey(buf[:0], 0))
	}
	if split, err := o.roomAbove(w, w.height, sep); split || err != nil {
		return false, err
	}
	size := FirstLeaf(len(key), len(value))
	if err := o.reserveSplit(w, w.height, size, sep); err != nil {
		return false, err
	}
	number, part, err := o.V.Add(o.Leaves, size)
	if err != nil {
		return false, err
	}
	single(part, key, value)
	if err := o.addChild(w, w.height, number, sep, behind); err != nil {
		o.V.Free(o.Leaves, number)
		return false, err
	}
	o.state().addCount(1)
	if behind {
		o.fitPage(o.Leaves, w.leaf, true)
	}
	return true, nil
}

// split gives the entries of the page at a level from cut on to a new page behind it. left and right are
// keys between which the two are separated.
func (o *Ordered) split(w *orderedWay, level, cut int, left, right []byte) error {
	sep := separator(left, right)
	if level < w.height {
		sep = right
	}
	if split, err := o.roomAbove(w, level, sep); split || err != nil {
		return err
	}
	plane, _ := o.plane(w, level)
	number := w.at(level)
	p, isNode := page(o.V.Part(plane, number)), level < w.height
	n := p.count()
	prefix := p.sharedBy(cut, n, isNode)
	size := p.sizeOf(cut, n, prefix)
	if err := o.reserveSplit(w, level, size, sep); err != nil {
		return err
	}
	added, part, err := o.V.Add(plane, size)
	if err != nil {
		return err
	}
	page(o.V.Part(plane, number)).copyTo(part, prefix, cut, n)
	if err := o.addChild(w, level, added, sep, true); err != nil {
		o.V.Free(plane, added)
		return err
	}
	p = page(o.V.Edit(plane, number))
	p.cut(cut, n)
	if prefix := p.sharedBy(0, cut, isNode); prefix > len(p.prefix()) {
		p.reprefix(prefix)
	}
	o.fitPage(plane, number, true)
	return nil
}

// roomAbove splits the node above a level if it has no room for a separator, and reports whether it has.
func (o *Ordered) roomAbove(w *orderedWay, level int, sep []byte) (split bool, err error) {
	if level == 0 {
		if w.height == maxOrderedHeight {
			return false, ErrCrowded
		}
		return false, nil
	}
	above := w.nodes[level-1]
	p := o.node(above.node)
	if p.needWith(sep, childLen) <= maxOrderedNode {
		return false, nil
	}
	cut := p.middle()
	if above.child == p.count()-1 {
		cut = above.child // keys ascend
	}
	var buf [MaxOrderedKey]byte
	return true, o.split(w, level-1, cut, nil, p.appendKey(buf[:0], cut))
}

// rootSize is how many bytes a root takes with two children.
func rootSize(sep []byte) int { return pageHead + 2*(2+childLen+pageSlot) + len(sep) }

// reserveSplit reserves a page of size bytes, and what the node above needs for a child more.
func (o *Ordered) reserveSplit(w *orderedWay, level, size int, sep []byte) error {
	if level == 0 {
		return o.V.Reserve(size, rootSize(sep))
	}
	p := o.node(w.nodes[level-1].node)
	if need := p.needWith(sep, childLen); need > len(p) {
		return o.V.Reserve(size, min(need+need/4, maxOrderedNode))
	}
	return o.V.Reserve(size)
}

// addChild has the node above a level know that there is another page next to the one at that level,
// behind it or in front. There is a new root if the page was the root.
func (o *Ordered) addChild(w *orderedWay, level, added int, sep []byte, behind bool) error {
	o.state().addTurn()
	first, second := w.at(level), added
	if !behind {
		first, second = added, first
	}
	var child [2][childLen]byte
	putChild(&child[0], first)
	putChild(&child[1], second)
	if level == 0 {
		number, part, err := o.V.Add(o.Nodes, rootSize(sep))
		if err != nil {
			return err
		}
		p := initPage(part, nil)
		p.insert(0, nil, child[0][:])
		p.insert(1, sep, child[1][:])
		o.state().setRoot(number, w.height+1)
		return nil
	}
	above := w.nodes[level-1]
	p, err := o.growTo(o.Nodes, above.node, o.node(above.node).needWith(sep, childLen), maxOrderedNode)
	if err != nil {
		return err
	}
	if n := p.shared(sep); n < len(p.prefix()) {
		p.reprefix(n)
	}
	p.setChild(above.child, first)
	p.insert(above.child+1, sep, child[1][:])
	return nil
}

// dropChild takes the page at a level, which is gone, out of the node above.
func (o *Ordered) dropChild(w *orderedWay, level int) {
	o.state().addTurn()
	if level == 0 {
		o.state().setRoot(0, 0)
		return
	}
	above := w.nodes[level-1]
	p := page(o.V.Edit(o.Nodes, above.node))
	if p.count() == 1 {
		o.V.Free(o.Nodes, above.node)
		o.dropChild(w, level-1)
		return
	}
	p.cut(above.child, above.child+1)
	switch {
	case level > 1:
		if !o.merge(w, level-1) {
			o.fitPage(o.Nodes, above.node, false)
		}
	case p.count() == 1:
		o.lower()
	}
}

// lower takes roots away that have one child.
func (o *Ordered) lower() {
	for s := o.state(); s.height() > 0; {
		number := s.root()
		p := o.node(number)
		if p.count() > 1 {
			return
		}
		s.setRoot(p.child(0), s.height()-1)
		o.V.Free(o.Nodes, number)
	}
}

// merge merges the page at a level with a neighbour if both have little, and reports whether it has.
// Without a free cell it does not.
func (o *Ordered) merge(w *orderedWay, level int) bool {
	plane, most := o.plane(w, level)
	if level == 0 || page(o.V.Part(plane, w.at(level))).need() > most/4 {
		return false
	}
	above := w.nodes[level-1]
	parent := o.node(above.node)
	for _, left := range [2]int{above.child - 1, above.child} {
		if left < 0 || left+1 >= parent.count() {
			continue
		}
		if o.join(w, level, left, most*3/4) {
			return true
		}
	}
	return false
}

// join merges two neighbours below the node above a level, unless they need more than most bytes.
func (o *Ordered) join(w *orderedWay, level, left, most int) bool {
	plane, _ := o.plane(w, level)
	isNode := level < w.height
	number := w.nodes[level-1].node
	parent := o.node(number)
	into, from := parent.child(left), parent.child(left+1)
	a, b := page(o.V.Part(plane, into)), page(o.V.Part(plane, from))
	var buf [MaxOrderedKey]byte
	prefix, sep := common(a.prefix(), b.prefix()), []byte(nil)
	if isNode {
		sep = parent.appendKey(buf[:0], left+1)
		prefix = min(prefix, a.shared(sep))
	}
	size := a.sizeOf(0, a.count(), prefix) + b.sizeOf(0, b.count(), prefix) + len(sep)
	if size > most {
		return false
	}
	if len(a) < size {
		end := len(a)
		moved, err := o.V.Resize(plane, into, size)
		if err != nil {
			return false
		}
		page(moved).spread(end)
	}
	a = page(o.V.Edit(plane, into))
	if prefix < len(a.prefix()) {
		a.reprefix(prefix)
	}
	b = page(o.V.Part(plane, from))
	hint := a.hint()
	if isNode {
		a.insert(a.count(), sep, b.value(0))
		a.take(b, 1, b.count())
	} else {
		a.take(b, 0, b.count())
	}
	a.setHint(hint)
	o.V.Free(plane, from)
	w.nodes[level-1].child = left + 1
	o.dropChild(w, level)
	return true
}
