package shape

// Each change takes its memory before it changes anything that can be seen. After engine.ErrMemory the
// entries are as they were. Deletions take only free cells, so they evict nothing and cannot fail.

// Set gives a key a value and reports whether the key is new. The errors are those of Reserve and
// MayGrow, and ErrCrowded.
func (o *Ordered) Set(key, value []byte) (added bool, err error) {
	_, found, err := o.Swap(key, value, nil)
	return !found && err == nil, err
}

// Swap is Set that appends the value that the key has had to dst, unless that is nil.
func (o *Ordered) Swap(key, value, dst []byte) (before []byte, found bool, err error) {
	if len(key) > MaxOrderedKey || len(key)+len(value) > MaxOrderedEntry {
		panic("BUG: an entry of an ordered map is too long")
	}
	if o.Len() == 0 {
		return dst, false, o.first(key, value)
	}
	for asked := false; ; {
		var w orderedWay
		found = o.search(&w, key)
		p := o.leaf(w.leaf)
		need := 0
		if found {
			old := p.value(w.entry)
			if need = p.need() + len(value) - len(old); dst != nil {
				before = append(dst, old...)
			}
		} else {
			need = p.needWith(key, len(value))
		}
		if more := need - p.need(); !asked && more > 0 {
			if err := o.V.MayGrow(more); err != nil {
				return before, found, err
			}
			asked = true
		}
		if need <= maxOrderedLeaf {
			return before, found, o.put(&w, found, key, value, need)
		}
		if done, err := o.splitFor(&w, found, key, value); done || err != nil {
			return before, found, err
		}
	}
}

// first gives an empty map its first entry.
func (o *Ordered) first(key, value []byte) error {
	if err := o.V.MayGrow(len(key) + len(value)); err != nil {
		return err
	}
	size := FirstLeaf(len(key), len(value))
	if err := o.V.Reserve(size); err != nil {
		return err
	}
	number, part, err := o.V.Add(o.Leaves, size)
	if err != nil {
		return err
	}
	single(part, key, value)
	o.state().setRoot(number, 0)
	o.state().addCount(1)
	return nil
}

// single makes a page of one entry.
func single(b, key, value []byte) { initPage(b, key).insert(0, key, value) }

// FirstLeaf is what Reserve is asked for the first entry of a map, whose key and value have so many bytes.
func FirstLeaf(key, value int) int { return pageHead + key + 1 + value + pageSlot }

// put stores an entry in its leaf, which needs so many bytes then.
func (o *Ordered) put(w *orderedWay, found bool, key, value []byte, need int) error {
	p, err := o.growTo(o.Leaves, w.leaf, need, maxOrderedLeaf)
	if err != nil {
		return err
	}
	if found {
		p.replace(w.entry, value)
		return nil
	}
	if n := p.shared(key); n < len(p.prefix()) {
		p.reprefix(n)
	}
	p.insert(w.entry, key, value)
	o.state().addCount(1)
	return nil
}

// replace gives an entry another value. There is room.
func (p page) replace(e int, value []byte) {
	old := p.value(e)
	if len(old) == len(value) {
		copy(old, value)
		return
	}
	end, used, by := p.end(e), p.used(), len(value)-len(old)
	copy(p[end+by:], p[end:used])
	copy(p[end-len(old):], value)
	for e := e; e < p.count(); e++ {
		p.setEnd(e, p.end(e)+by)
	}
	p.setUsed(used + by)
}

// reprefix gives the page a prefix of n bytes. There is room.
func (p page) reprefix(n int) {
	var scratch [maxOrderedNode]byte
	p.assign(p.copyTo(scratch[:min(len(p), maxOrderedNode)], n, 0, p.count()))
}

// assign makes the page equal to another one. There is room.
func (p page) assign(from page) {
	slots := pageSlot * from.count()
	copy(p, from[:from.used()])
	copy(p[len(p)-slots:], from[len(from)-slots:])
}

// growTo moves a page to a cell of at least need bytes, of which most is the limit. It takes a free cell,
// or reserves.
func (o *Ordered) growTo(plane, number, need, most int) (page, error) {
	p := page(o.V.Edit(plane, number))
	if len(p) >= need {
		return p, nil
	}
	end, size := len(p), min(need+need/4, most)
	moved, err := o.V.Resize(plane, number, size)
	if err != nil {
		if err := o.V.Reserve(size); err != nil {
			return nil, err
		}
		if moved, err = o.V.Resize(plane, number, size); err != nil {
			return nil, err
		}
	}
	page(moved).spread(end)
	return moved, nil
}

// fitPage moves a page to a smaller cell if a quarter of its own is unused; always: if anything is.
// Without memory it stays where it is.
func (o *Ordered) fitPage(plane, number int, always bool) {
	o.fit(partOf(o.V, nil, plane, number), plane, number, always)
}

func (o *Ordered) fit(p page, plane, number int, always bool) {
	need := p.need()
	if unused := len(p) - need; unused < slack || !always && unused < len(p)/4 {
		return
	}
	p = o.V.Edit(plane, number)
	slots := pageSlot * p.count()
	copy(p[need-slots:], p[len(p)-slots:])
	end := need
	moved, err := o.V.Resize(plane, number, need)
	if err != nil {
		moved = p
	}
	page(moved).spread(end)
}

// Delete removes a key and reports whether it was there.
func (o *Ordered) Delete(key []byte) bool {
	_, found := o.Take(key, nil)
	return found
}

// Take is Delete that appends the value that the key has had to dst, unless that is nil.
func (o *Ordered) Take(key, dst []byte) (value []byte, found bool) {
	if o.Len() == 0 {
		return dst, false
	}
	var w orderedWay
	if !o.search(&w, key) {
		return dst, false
	}
	if dst != nil {
		value = append(dst, o.leaf(w.leaf).value(w.entry)...)
	}
	o.remove(&w, w.entry+1)
	return value, true
}

// DeleteRange removes the keys from one to another, both included: the first ones, at most so many, from so
// many leaves at most. It returns how many it has removed, and whether none is left.
func (o *Ordered) DeleteRange(first, last []byte, keys, leaves int) (removed int, done bool) {
	for ; leaves > 0 && removed < keys; leaves-- {
		if o.Len() == 0 {
			return removed, true
		}
		c := o.Seek(first)
		if !c.ok {
			return removed, true
		}
		end, found := c.p.search(last, c.w.entry)
		if found {
			end++
		}
		if end == c.w.entry {
			return removed, true
		}
		end = min(end, c.w.entry+keys-removed)
		removed += end - c.w.entry
		o.remove(&c.w, end)
	}
	return removed, false
}

// remove removes the entries from where the way leads to up to another one of the leaf.
func (o *Ordered) remove(w *orderedWay, to int) {
	p := page(o.V.Edit(o.Leaves, w.leaf))
	o.state().addCount(w.entry - to)
	if to-w.entry == p.count() {
		o.V.Free(o.Leaves, w.leaf)
		o.dropChild(w, w.height)
		return
	}
	p.cut(w.entry, to)
	if !o.merge(w, w.height) {
		o.fitPage(o.Leaves, w.leaf, false)
	}
}
