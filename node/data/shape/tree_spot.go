package shape

import "encoding/binary"

func (b block) parent() int     { return int(binary.LittleEndian.Uint32(b[blockHead:])) }
func (b block) setParent(p int) { binary.LittleEndian.PutUint32(b[blockHead:], uint32(p)) }

// Spot is where a ranked tree has an entry, and its rank. It is valid until the next change.
type Spot struct {
	Rank        uint64
	leaf, entry int
	hash        uint32
}

// Lookup finds an entry of a ranked tree by its first string. If there are several, it is one of
// them.
func (t *Tree) Lookup(first []byte) (s Spot, ok bool) { return t.lookup(first, 0, false) }

// lookup is Lookup of an entry that has the rank, if exact.
func (t *Tree) lookup(first []byte, rank uint64, exact bool) (s Spot, ok bool) {
	if t.V.Len(t.Index) == 0 {
		return s, false
	}
	h, p := t.hash(first), t.probe(first)
	s.hash = h
	c, depth := t.index().bucket(h)
	for i := c.search(0, h, depth); i >= 0; i = c.search(i+1, h, depth) {
		s.leaf = leafOf(c.word(i), depth)
		b := block(t.V.Part(t.Leaves, s.leaf))
		for from := 0; ; from = s.entry + 1 {
			if s.entry = t.searchString(b, from, tagOf32(h), &p); s.entry < 0 {
				break
			}
			if s.Rank = rankOf(b, s.entry); !exact || s.Rank == rank {
				return s, true
			}
		}
	}
	return s, false
}

// searchString returns the next entry of a leaf, from one on, that has the probe's string as its first; -1 if none has.
func (t *Tree) searchString(b block, e int, tag byte, p *probe) int {
	w, n := leafFront+t.Items, b.count() // the width is known before the leaf has come from memory
	for i := len(b) - (e+1)*w + rankFront; e < n; e, i = e+1, i-w {
		if b[i] != tag || b[i+tagFront] != p.code {
			continue
		}
		off := b.offset(e)
		item := b[off : off+int(stored[p.code])]
		if p.code == codeAway {
			if string(awayString(t.part(t.Away, int(binary.LittleEndian.Uint32(item))))) == string(p.s) {
				return e
			}
		} else if p.is(p.code, item) {
			return e
		}
	}
	return -1
}

// Position is the position of the entry at a spot.
func (t *Tree) Position(s Spot) int {
	position, child := s.entry, s.leaf
	parent := block(t.V.Part(t.Leaves, s.leaf)).parent()
	for range t.state().height() {
		n := node(t.V.Part(t.Nodes, parent))
		for i := 0; n.child(i) != child; i++ {
			position += n.weight(i)
		}
		child, parent = parent, n.parent()
	}
	return position
}

// wayTo is the way to a spot.
func (t *Tree) wayTo(s Spot) (w way) {
	w.leaf, w.entry, w.height = s.leaf, s.entry, t.state().height()
	child, parent := s.leaf, block(t.V.Part(t.Leaves, s.leaf)).parent()
	for level := w.height - 1; level >= 0; level-- {
		n := node(t.V.Part(t.Nodes, parent))
		i := 0
		for n.child(i) != child {
			i++
		}
		w.nodes[level] = turn{parent, i}
		child, parent = parent, n.parent()
	}
	return w
}

// Cut removes the entry with a rank and a first string from a ranked tree, and reports whether there
// was one.
func (t *Tree) Cut(rank uint64, first []byte) bool {
	s, ok := t.lookup(first, rank, true)
	if ok {
		t.CutAt(s)
	}
	return ok
}

// CutAt removes the entry at a spot.
func (t *Tree) CutAt(s Spot) {
	w := t.wayTo(s)
	t.index().remove(s.hash, s.leaf)
	t.deleteFrom(&w, 1)
	t.tidyIndex(1)
}

// Move gives the entry at a spot, which has a first string and no second one, another rank. After an
// error it has its old one.
func (t *Tree) Move(s Spot, rank uint64, first []byte) error {
	if s.Rank == rank || t.slide(s, rank, first) {
		return nil
	}
	if err := t.index().reserveNumbers(); err != nil {
		return err
	}
	x, leaves := t.newEntry(rank, first, nil), t.V.Count(t.Leaves)
	w, _ := t.search(rank, first)
	w, err := t.insert(w, &x)
	switch {
	case err != nil:
		return err
	case t.V.Count(t.Leaves) != leaves:
		s, _ = t.lookup(first, s.Rank, true) // a split may have moved it
	case w.leaf == s.leaf && w.entry <= s.entry:
		s.entry++
	}
	t.index().move(s.hash, s.leaf, w.leaf)
	w = t.wayTo(s)
	t.deleteFrom(&w, 1)
	return nil
}

// slide is Move of an entry that stays between others of its leaf, and reports whether it does.
func (t *Tree) slide(s Spot, rank uint64, first []byte) bool {
	b := block(t.V.Part(t.Leaves, s.leaf))
	to, _ := t.searchLeaf(b, rank, first)
	if to == 0 || to == b.count() {
		return false // perhaps it belongs to another leaf
	}
	b = t.V.Edit(t.Leaves, s.leaf)
	if to != s.entry && to != s.entry+1 {
		var slot [leafFront + 1]byte
		var item [maxInRanked]byte
		off, size := b.offset(s.entry), b.size(s.entry)
		copy(slot[:], b.slot(s.entry))
		copy(item[:], b[off:off+size])
		b.cut(s.entry, s.entry+1, off, size)
		if to > s.entry {
			to--
		}
		into, at := b.open(to, size)
		copy(into, slot[:])
		copy(b[at:], item[:size])
		s.entry = to
	}
	binary.LittleEndian.PutUint64(b.slot(s.entry), rank)
	return true
}
