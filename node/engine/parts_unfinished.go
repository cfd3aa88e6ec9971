package engine

import "slices"

// The snapshot of a value with parts comes in chunks, between other effects. If its sender dies
// after the first of them, the receiver has a value that lacks elements. So a value is unfinished
// from the begin effect of its snapshot to the last delta. The key of an unfinished value is absent
// for everything but the effects that build it: Find, Peek, Walk and the counts pass it, and
// whatever is stored under the key takes its place. Its memory is counted like any other value's.
//
// An unfinished value becomes whole by the end of its snapshot. It goes when its partition becomes
// no copy any more (SetCopy), when its sender stops (DropUnfinished), with its partition, or when
// memory is needed. A value that a command builds aside is unfinished, too, until Rename.

// DropUnfinished removes the values with parts from partition p whose snapshot has not ended. It is
// called once Taker.Admits admits no more effects on p. It waits for a unit that is being applied,
// and when it returns nothing of the sender's is on its way into p. The memory of what it removes
// becomes free when it is needed, or by Sweep. If the sender goes on after all, the receiver lacks
// those keys (Lacker).
func (e *Engine) DropUnfinished(p uint16) {
	s := e.shardOf(p)
	s.mu.Lock()
	s.units.await(p)
	s.dropUnfinished(p)
	Txn{s: s}.Unlock()
}

func (s *shard) dropUnfinished(p uint16) {
	for i := len(s.values.unfinished) - 1; i >= 0; i-- {
		root := s.cells.head(s.values.unfinished[i]).root
		if h := s.cells.header(root); h.partition() == p {
			part, tag := s.partition(s.cells.section(root, h)), s.tagOfRecord(root, h)
			s.erase(part, tag, s.indexes.mustFind(part, tag, root))
			s.changes++
		}
	}
}

// isThere reports whether en names a record that commands may see.
func (t Txn) isThere(en entry) bool {
	if !en.found() {
		return false
	}
	h := t.s.cells.header(en.ref())
	return !h.isRoot() || !t.s.values.isUnfinished(en.ref(), h)
}

// peekAny is Peek that finds unfinished values, too.
func (t Txn) peekAny(key []byte) (Item, bool) {
	en, _ := t.lookup(key)
	if !en.found() {
		return Item{}, false
	}
	return t.s.cells.item(en.ref()), true
}

// begin notes that the value is unfinished.
func (v Parts) begin() {
	v.head().unfinished = true
	v.t.s.values.unfinished = append(v.t.s.values.unfinished, v.at)
}

// finish makes the value whole.
func (v Parts) finish() {
	if h := v.head(); h.unfinished {
		h.unfinished = false
		v.t.s.values.forgetUnfinished(v.at)
	}
}

// isUnfinished reports whether the record with header h, a root, names an unfinished value.
func (v *values) isUnfinished(ref handle, h header) bool {
	return len(v.unfinished) > 0 && v.s.cells.head(v.s.cells.headOf(ref, h)).unfinished
}

// forgetUnfinished takes a head from the list of unfinished values, if it is there. The list is
// short: a sender builds one value of a partition at a time.
func (v *values) forgetUnfinished(at handle) {
	if i := slices.Index(v.unfinished, at); i >= 0 {
		v.unfinished = slices.Delete(v.unfinished, i, i+1)
	}
}

// countUnfinished returns how many unfinished values a section has.
func (v *values) countUnfinished(section uint16) (n int) {
	for _, at := range v.unfinished {
		if v.sectionOf(at) == section {
			n++
		}
	}
	return n
}

// leaveUnfinished takes the values of a section, which is being dropped, from the list: they are no
// keys any more, and die with its index.
func (v *values) leaveUnfinished(section uint16) {
	v.unfinished = slices.DeleteFunc(v.unfinished, func(at handle) bool { return v.sectionOf(at) == section })
}

// sectionOf is the section of the value with the head.
func (v *values) sectionOf(at handle) uint16 {
	root := v.s.cells.head(at).root
	return v.s.cells.section(root, v.s.cells.header(root))
}
