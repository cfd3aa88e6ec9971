package shape

// Insertions reserve for themselves, one at a time. A command that makes several reserves for all of
// them before the first: for each leaf that gets entries a cell that is long enough, and where a leaf
// gets more than it may have, as many leaves and nodes of full length as can come of it. Then nothing
// is reserved until Settle, and no leaf moves to a smaller cell.

// ReserveAt takes the memory for entries that are to be inserted at one position of a tree without
// ranks: entries has their first strings, or first, second, first, second ... Then each InsertAt of
// them succeeds once, in any order. Settle must be called after the last, before other changes of
// the value. After an error the entries are as they were, and Settle need not be called.
func (t *Tree) ReserveAt(w *Work, position int, entries [][]byte) error {
	if err := t.firstLeaf(); err != nil {
		return err
	}
	w.touched, w.sizes = w.touched[:0], w.sizes[:0]
	to, bytes := t.to(position), 0
	for i := 0; i < len(entries); i += t.Items {
		second := []byte(nil)
		if t.Items > 1 {
			second = entries[i+1]
		}
		x := t.newEntry(0, entries[i], second)
		t.want(w, to.leaf, &x)
		bytes += t.bytesOf(&x)
	}
	if err := t.mayInsert(bytes); err != nil {
		return err
	}
	return t.reserveAll(w)
}

// bytesOf is how many bytes an entry takes, in its leaf and in parts.
func (t *Tree) bytesOf(x *newEntry) int {
	bytes := t.front() + t.Items + x.size
	for i := range x.items {
		bytes += x.probes[i].awayBytes()
	}
	return bytes
}

// awayBytes is how many bytes the item has besides its block.
func (p *probe) awayBytes() int {
	if p.code != codeAway {
		return 0
	}
	return awaySize(p.length())
}

// mayInsert returns engine.ErrTooBig if the tree may not grow by so many bytes of new entries.
func (t *Tree) mayInsert(bytes int) error {
	if t.Moves || t.bulk != nil {
		return nil
	}
	return t.V.MayGrow(bytes)
}

// mayReplace is mayInsert of a string that replaces the i-th one of an entry.
func (t *Tree) mayReplace(position, i int, s []byte) error {
	if t.mayInsert(len(s)) == nil {
		return nil
	}
	x := t.At(position)
	return t.V.MayGrow(len(s) - [2]Item{x.First, x.Second}[i].Len())
}

// want notes that a leaf gets an entry.
func (t *Tree) want(w *Work, leaf int, x *newEntry) {
	w.touched = append(w.touched, touched{leaf, t.front() + t.Items + x.size, 1})
	for i := range x.items {
		if p := &x.probes[i]; p.code == codeAway {
			w.sizes = append(w.sizes, awayRoom(t.V, p.s, p.length()))
		}
	}
}

// reserveAll reserves what is noted, and moves the leaves to cells that are long enough.
func (t *Tree) reserveAll(w *Work) error {
	if len(w.touched) > 1 {
		w.gather()
	}
	for i := range w.touched {
		x := &w.touched[i]
		b := block(t.V.Part(t.Leaves, x.number))
		x.bytes += b.need()
		if x.bytes > t.maxLeaf() || b.count()+x.count > mostInLeaf {
			t.wantSplits(w, x.bytes, b.count()+x.count)
			x.bytes = t.maxLeaf()
		}
		if x.bytes > len(b) {
			w.sizes = append(w.sizes, x.bytes)
		}
	}
	if err := t.V.Reserve(w.sizes...); err != nil {
		return err
	}
	for _, x := range w.touched {
		if _, err := grow(t.V, t.Leaves, x.number, x.bytes); err != nil {
			return err // only if the caller has reserved for others meanwhile
		}
	}
	t.bulk, w.leaves = w, w.leaves[:0]
	return nil
}

// wantSplits notes the leaves and nodes that can come of a leaf that gets so long. A split leaves at
// least a third of a full leaf on either side, but at the ends of the tree, where one side is full.
func (t *Tree) wantSplits(w *Work, bytes, entries int) {
	leaves := 2 + bytes/(t.maxLeaf()/3) + entries/(mostInLeaf/3)
	nodes := 2*(t.state().height()+1) + leaves/(fan/3)
	for range leaves {
		w.sizes = append(w.sizes, t.maxLeaf())
	}
	for range nodes {
		w.sizes = append(w.sizes, t.nodeSize(fan))
	}
}

// Settle ends what ReserveAt began: leaves move to cells that fit.
func (t *Tree) Settle() {
	w := t.bulk
	t.bulk = nil
	for _, x := range w.touched {
		fit(t.V, t.Leaves, x.number)
	}
	for _, number := range w.leaves {
		fit(t.V, t.Leaves, number)
	}
}
