package shape

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// Each change of a tree takes its memory before it changes what the tree has. After
// engine.ErrMemory the entries are as they were.

// InsertAt inserts an entry at a position of a tree without ranks, in front of the one that stands
// there. second is nil if the tree has one item.
func (t *Tree) InsertAt(position int, first, second []byte) error {
	x := t.newEntry(0, first, second)
	if t.insertAtOnce(position, &x) {
		return nil
	}
	if err := t.mayInsert(t.bytesOf(&x)); err != nil {
		return err
	}
	if err := t.firstLeaf(); err != nil {
		return err
	}
	x.position = position
	_, err := t.insert(t.to(position), &x)
	return err
}

// Insert inserts an entry into a ranked tree, in its order. added is false if it is there already:
// nothing has changed then, and second is not looked at. first has engine.MaxKeyLen bytes at most.
func (t *Tree) Insert(rank uint64, first, second []byte) (added bool, err error) {
	if len(first) > engine.MaxKeyLen {
		return false, engine.ErrKeyTooLong
	}
	if err := t.firstLeaf(); err != nil {
		return false, err
	}
	w, found := t.search(rank, first)
	if found {
		return false, nil
	}
	x := t.newEntry(rank, first, second)
	if err := t.mayInsert(t.bytesOf(&x)); err != nil {
		return false, err
	}
	if err := t.reserveIndex(x.hash()); err != nil {
		return false, err
	}
	if w, err = t.insert(w, &x); err != nil {
		return false, err
	}
	t.index().add(x.hash(), w.leaf)
	return true, nil
}

// newEntry is an entry that is to be stored.
type newEntry struct {
	position int // in a tree without ranks
	rank     uint64
	probes   [2]probe
	items    int
	size     int // bytes in its leaf, besides its slot
}

func (t *Tree) newEntry(rank uint64, first, second []byte) (x newEntry) {
	x.rank, x.items = rank, t.Items
	x.probes[0] = t.probe(first)
	if t.Ranked {
		x.probes[0].hash = t.hash(first)
	}
	if t.Items > 1 {
		x.probes[1] = t.probe(second)
	}
	for i := range x.items {
		x.size += x.probes[i].size()
	}
	return x
}

// probe is probeOf a string that becomes a part if it is too long for a leaf of the tree.
func (t *Tree) probe(s []byte) probe {
	p := probeOf(s)
	if t.Ranked && len(s) > maxInRanked {
		p.code = codeAway
	}
	return p
}

// hash is that of the first string of an entry of a ranked tree.
func (x *newEntry) hash() uint32 { return x.probes[0].hash }

// insert inserts an entry where the way leads to, and returns the way that leads to it then.
func (t *Tree) insert(w way, x *newEntry) (way, error) {
	w, b, err := t.makeRoom(w, x)
	if err != nil {
		return w, err
	}
	if err := moveOut(t.V, t.Away, x.probes[:x.items]); err != nil {
		return w, err
	}
	slot, off := b.open(w.entry, x.size)
	if t.Ranked {
		binary.LittleEndian.PutUint64(slot, x.rank)
		slot[rankFront] = tagOf32(x.hash())
	}
	putItems(b, slot[b.front():], off, x.probes[:x.items])
	t.weigh(&w, 1, x.size+len(slot))
	return w, nil
}

// firstLeaf gives a tree without leaves its first one.
func (t *Tree) firstLeaf() error {
	s := t.state()
	if s.count() > 0 {
		return nil
	}
	if root := block(t.V.Part(t.Leaves, s.root())); root != nil && !root.isTombstone() {
		return nil
	}
	size := blockHead + leafLead + t.front() + t.Items
	if err := t.V.Reserve(size); err != nil {
		return err
	}
	number, b, err := t.V.Add(t.Leaves, size)
	if err == nil {
		t.initLeaf(b)
		t.state().setRoot(number, 0)
	}
	return err
}

// initLeaf makes b an empty leaf.
func (t *Tree) initLeaf(b []byte) block {
	leaf := initBlock(b, t.front(), t.Items)
	if t.Ranked {
		leaf.lead(leafLead)
	}
	return leaf
}

// makeRoom reserves what an entry takes where the way leads to, and splits leaf and nodes for it. It
// returns the way that leads there then, and the leaf.
func (t *Tree) makeRoom(w way, x *newEntry) (way, block, error) {
	for {
		b := block(t.V.Part(t.Leaves, w.leaf))
		need := b.need() + b.slotLen() + x.size
		if need <= t.maxLeaf() && b.count() < mostInLeaf || b.count() == 0 {
			b, err := t.reserveIn(w.leaf, t.spacious(need, x), x.probes[:x.items])
			return w, b, err
		}
		if err := t.splitFor(&w, b); err != nil {
			return w, nil, err
		}
		if t.Ranked {
			w, _ = t.search(x.rank, x.probes[0].s)
		} else {
			w = t.to(x.position)
		}
	}
}

// reserveIn reserves n bytes for a leaf, and the parts of items that do not stand in it, and moves
// the leaf to a cell that is long enough.
func (t *Tree) reserveIn(leaf, n int, probes []probe) (b block, err error) {
	var sizes [3]int
	count := 0
	b = t.V.Part(t.Leaves, leaf)
	if n > len(b) {
		sizes[count] = n
		count++
	}
	for i := range probes {
		if probes[i].code == codeAway {
			sizes[count] = awayRoom(t.V, probes[i].s, probes[i].length())
			count++
		}
	}
	if count > 0 && t.bulk == nil {
		if err := t.V.Reserve(sizes[:count]...); err != nil {
			return nil, err
		}
	}
	return grow(t.V, t.Leaves, leaf, n)
}

// weigh notes that the leaf of a way has so many entries and bytes more.
func (t *Tree) weigh(w *way, entries, bytes int) {
	for _, x := range w.nodes[:w.height] {
		node(t.V.Edit(t.Nodes, x.node)).addWeight(x.child, entries)
	}
	s := t.state()
	s.addCount(entries)
	s.addBytes(bytes)
}

// Replace gives the entry at a position another i-th string. In a ranked tree that is not the first
// one.
func (t *Tree) Replace(position, i int, s []byte) error {
	if err := t.mayReplace(position, i, s); err != nil {
		return err
	}
	return t.replace(position, i, [1]probe{t.probe(s)})
}

func (t *Tree) replace(position, i int, p [1]probe) error {
	for {
		w := t.to(position)
		b := block(t.V.Part(t.Leaves, w.leaf))
		off := b.offset(w.entry)
		code, old := b.item(w.entry, off, i)
		need := b.need() + p[0].size() - len(old)
		if need > t.maxLeaf() && b.count() > 1 {
			if err := t.splitFor(&w, b); err != nil {
				return err
			}
			continue
		}
		b, err := t.reserveIn(w.leaf, need, p[:])
		if err != nil {
			return err
		}
		if err := moveOut(t.V, t.Away, p[:]); err != nil {
			return err
		}
		_, old = b.item(w.entry, off, i)
		if code == codeAway {
			t.V.Free(t.Away, int(binary.LittleEndian.Uint32(old)))
		}
		at := off
		for _, code := range b.slot(w.entry)[b.front():][:i] {
			at += int(stored[code])
		}
		t.state().addBytes(p[0].size() - len(old))
		b.stretch(at, len(old), p[0].size())
		putItems(b, b.slot(w.entry)[b.front()+i:], at, p[:])
		fit(t.V, t.Leaves, w.leaf)
		return nil
	}
}

// Delete removes the entry at a position.
func (t *Tree) Delete(position int) { t.DeleteSome(position, 1) }

// DeleteSome removes up to n entries from a position on, those of one leaf, and returns how many it
// has removed: at least one, if there is one.
func (t *Tree) DeleteSome(position, n int) int {
	if position >= t.Len() || n <= 0 {
		return 0
	}
	if removed := t.deleteAtOnce(position, n); removed > 0 {
		return removed
	}
	w := t.to(position)
	if !t.Ranked {
		return t.deleteFrom(&w, n)
	}
	removed, _ := t.deleteRanked(&w, n)
	return removed
}

// DeleteRange removes up to n entries from a position of a ranked tree on, and returns how many it has
// removed. It stops after so many steps, or a few more: an entry takes one, and a leaf that is removed
// whole takes few. each, unless it is nil, is called for the entries in their order before they go,
// and takes a step for some of them.
func (t *Tree) DeleteRange(position, n, steps int, each func(x Entry)) (removed int) {
	n = min(n, t.Len()-position)
	for removed < n && steps > 0 {
		w := t.to(position)
		some := min(n-removed, block(t.V.Part(t.Leaves, w.leaf)).count()-w.entry)
		if !t.goesWhole(&w, some) {
			some = min(some, steps)
		}
		if each != nil {
			left := some
			t.Walk(position, func(x Entry) bool {
				each(x)
				left--
				return left > 0
			})
			steps -= some / eachSteps
		}
		_, taken := t.deleteRanked(&w, some)
		removed += some
		steps -= taken
	}
	return removed
}

// eachSteps: DeleteRange takes a step for so many calls of each.
const eachSteps = 4

// deleteRanked is deleteFrom of a ranked tree with its index. It returns how many steps it took.
func (t *Tree) deleteRanked(w *way, n int) (removed, steps int) {
	if t.goesWhole(w, n) {
		removed, steps = t.entomb(w), entombingSteps
	}
	if removed == 0 {
		b := block(t.V.Part(t.Leaves, w.leaf))
		t.index().removeAll(t, b, w.entry, min(w.entry+n, b.count()), b.offset(w.entry), w.leaf)
		removed = t.deleteFrom(w, n)
		steps = removed
	}
	return removed, steps + t.tidyIndex(removed)
}

// deleteFrom is DeleteSome from where the way leads to. The index is not changed.
func (t *Tree) deleteFrom(w *way, n int) int {
	b := block(t.V.Edit(t.Leaves, w.leaf))
	from := w.entry
	to := min(from+n, b.count())
	off := b.offset(from)
	size := t.freeAway(b, from, to, off)
	t.weigh(w, from-to, -size-(to-from)*b.slotLen())
	if to-from == b.count() {
		t.V.Free(t.Leaves, w.leaf)
		if w.height > 0 {
			t.dropChild(w, w.height-1, w.nodes[w.height-1].child)
		}
		return to - from
	}
	b.cut(from, to, off, size)
	if !t.mergeLeaf(w) {
		fit(t.V, t.Leaves, w.leaf)
	}
	return to - from
}

// freeAway frees the parts of entries whose bytes begin at off, and returns how many bytes they have.
func (t *Tree) freeAway(b block, from, to, off int) (size int) {
	begin := off
	for e := from; e < to; e++ {
		for _, code := range b.slot(e)[b.front():] {
			if code == codeAway {
				t.V.Free(t.Away, int(binary.LittleEndian.Uint32(b[off:])))
			}
			off += int(stored[code])
		}
	}
	return off - begin
}
