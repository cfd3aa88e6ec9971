package shape

// Finger remembers a leaf of a map, and where its keys end: keys that are stored one behind the other find it
// again without the way down. It is good for one lock, and one map; the zero Finger knows no leaf.
type Finger struct {
	known bool
	turn  uint16 // of the map
	leaf  int
	bound int // length of upper; unbounded: it is the last leaf
	upper [maxFinger]byte
}

const (
	maxFinger = 40 // bytes of the longest key that a finger has
	unbounded = -1
)

// find returns where a key stands in the finger's leaf, or would; ok is false if it may belong to
// another leaf.
func (f *Finger) find(o *Ordered, key []byte) (e int, found, ok bool) {
	if !f.known || f.turn != o.state().turn() {
		return 0, false, false
	}
	p := o.leaf(f.leaf)
	e, found = p.search(key, 0)
	switch {
	case found || e > 0 && e < p.count():
		return e, found, true
	case e == 0 || f.bound != unbounded && string(key) >= string(f.upper[:f.bound]):
		return 0, false, false
	}
	return e, false, true
}

// point has the finger remember the leaf of a way.
func (f *Finger) point(o *Ordered, w *orderedWay) {
	f.known, f.turn, f.leaf, f.bound = true, o.state().turn(), w.leaf, unbounded
	for level := w.height - 1; level >= 0; level-- {
		t := w.nodes[level]
		if p := o.node(t.node); t.child+1 < p.count() {
			prefix, rest := p.prefix(), p.rest(t.child+1)
			f.known = len(prefix)+len(rest) <= maxFinger
			f.bound = copy(f.upper[:], prefix)
			f.bound += copy(f.upper[f.bound:], rest)
			return
		}
	}
}

// SwapAt is Swap at a finger.
func (o *Ordered) SwapAt(f *Finger, key, value, dst []byte) (before []byte, found bool, err error) {
	if e, found, ok := f.find(o, key); ok && o.Len() > 0 {
		p := o.leaf(f.leaf)
		need := 0
		if found {
			need = p.need() + len(value) - len(p.value(e))
		} else {
			need = p.needWith(key, len(value))
		}
		if need <= len(p) && need <= maxOrderedLeaf && o.V.MayGrow(max(0, need-p.need())) == nil {
			if found {
				dst = append(dst, p.value(e)...)
			}
			w := orderedWay{leaf: f.leaf, entry: e}
			return dst, found, o.put(&w, found, key, value, need)
		}
	}
	if before, found, err = o.Swap(key, value, dst); err == nil {
		var w orderedWay
		o.search(&w, key)
		f.point(o, &w)
	}
	return before, found, err
}
