package shape

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// Work is memory that changes of values need meanwhile. Each loop has one, so that a change
// allocates nothing.
type Work struct {
	delta   []byte  // of the changes since Note
	times   []int64 // when the elements in args expire
	touched []touched
	sizes   []int
	leaves  []int    // that were added since Tree.ReserveAt
	drawn   []uint64 // by Table.DrawSome

	// The strings of items, see beginTexts.
	text []byte
	ends []int
	args [][]byte

	change  []byte // the delta of a List
	tooLong bool   // what has changed is too long for a delta
}

// touched is a block that gets so many entries of so many bytes.
type touched struct {
	number, bytes, count int
}

// Reserve takes the memory for elements that are to be set: their keys, or key, value, key, value
// ... if the table has two items. expire: they may get a time. Then each Set succeeds once, in any
// order. Other changes of the value are not to be made in between. After an error the table is as it
// was. engine.ErrTooBig: it may not grow by them.
func (t *Table) Reserve(w *Work, elements [][]byte, expire bool) error {
	count, total, away := len(elements)/t.Items, 0, 0
	for i := 0; i < len(elements); i += t.Items {
		if len(elements[i]) > engine.MaxKeyLen {
			return engine.ErrKeyTooLong
		}
		total += t.cost(elements[i:i+t.Items], expire, nil)
		away += awayBytes(elements[i : i+t.Items])
	}
	if t.V.MayGrow(total+away) != nil {
		added, adjusted := t.growth(elements, expire)
		if err := cmp.Or(t.V.MayGrow(added), t.V.MayAdjust(adjusted)); err != nil {
			return err
		}
	}
	if err := t.growFor(count, total); err != nil {
		return err
	}
	n := t.V.Len(t.Blocks)
	w.touched, w.sizes = w.touched[:0], w.sizes[:0]
	for i := 0; i < len(elements); i += t.Items {
		b := bucket(t.V.Hash(elements[i]), n)
		w.touched = append(w.touched, touched{b, t.cost(elements[i:i+t.Items], expire, &w.sizes), 1})
	}
	if count > 1 {
		w.gather()
	}
	if err := t.wantBlocks(w, elements, expire); err != nil {
		return err
	}
	return t.growTouched(w)
}

// growTouched takes the memory for w.sizes, and moves the touched blocks that are to be longer.
func (t *Table) growTouched(w *Work) error {
	if len(w.sizes) > 0 {
		if err := t.V.Reserve(w.sizes...); err != nil {
			return err
		}
	}
	for _, x := range w.touched {
		if x.bytes == 0 {
			continue
		}
		if _, err := grow(t.V, t.Blocks, x.number, x.bytes); err != nil {
			return err // only if the caller has reserved for others meanwhile
		}
	}
	return nil
}

// cost is how many bytes an element takes in its block at most. The parts that it needs are appended
// to sizes, unless that is nil.
func (t *Table) cost(element [][]byte, expire bool, sizes *[]int) int {
	cost := tagFront + t.Items
	for _, s := range element {
		if len(s) <= maxInside {
			cost += len(s)
			continue
		}
		cost += awayNumber
		if sizes != nil {
			*sizes = append(*sizes, awayRoom(t.V, s, len(s)))
		}
	}
	if expire {
		cost += 1 + expirySize
	}
	return cost
}

// awayBytes is how many bytes the parts have that the strings of an element need.
func awayBytes(element [][]byte) (bytes int) {
	for _, s := range element {
		if len(s) > maxInside {
			bytes += awaySize(len(s))
		}
	}
	return bytes
}

// growth is by how much elements make the table bigger: new ones, and those whose value gets longer.
// What others make it smaller does not count. adjusted is what integers and times take more, which are
// in no string's length.
func (t *Table) growth(elements [][]byte, expire bool) (added, adjusted int) {
	for i := 0; i < len(elements); i += t.Items {
		x := elements[i : i+t.Items]
		b, at, found := t.lookup(x[0])
		if !found {
			added += t.cost(x, expire, nil) + awayBytes(x)
			continue
		}
		old := t.element(b, at)
		if expire && old.ExpireAt == 0 {
			adjusted += 1 + expirySize
		}
		if t.Items > 1 {
			p, longer := probeOf(x[1]), 0
			if p.code < codeInt || p.code == codeAway {
				longer = max(0, len(x[1])-old.Value.Len())
			}
			added += longer
			adjusted += max(0, p.size()+p.awayBytes()-old.Value.stored()-longer)
		}
	}
	return added, adjusted
}

// gather makes one of what concerns the same block.
func (w *Work) gather() {
	slices.SortFunc(w.touched, func(a, b touched) int { return a.number - b.number })
	last := 0
	for _, x := range w.touched[1:] {
		if x.number == w.touched[last].number {
			w.touched[last].bytes += x.bytes
			w.touched[last].count++
			continue
		}
		last++
		w.touched[last] = x
	}
	w.touched = w.touched[:last+1]
}

// wantBlocks puts into w how long each touched block becomes, 0 for one that is long enough.
func (t *Table) wantBlocks(w *Work, elements [][]byte, expire bool) error {
	crowded := false
	for i := range w.touched {
		x := &w.touched[i]
		b := block(t.V.Part(t.Blocks, x.number))
		need := b.need() + x.bytes
		switch {
		case expire && b.items() == t.Items:
			need += b.count() // for an item more
		case !expire && b.items() > t.Items:
			need += x.count
		}
		if need > crowdedAt {
			crowded = true
			perEntry := tagFront + maxItems + t.Items*max(awayNumber, 8) + expirySize
			need = max(b.need()+b.count(), crowdedAt) + x.count*perEntry
			if need > maxBlock {
				return ErrCrowded
			}
		}
		x.bytes = 0
		if need > len(b) {
			x.bytes = need
			w.sizes = append(w.sizes, x.bytes)
		}
	}
	if crowded {
		for _, s := range elements {
			if len(s) <= maxInside {
				w.sizes = append(w.sizes, awaySize(len(s)))
			}
		}
	}
	return nil
}

// Set gives a key a value, which is nil in a table of one item, and a time when the element expires:
// unix milliseconds, 0 for never. Reserve was called for it. It reports whether the key is new.
// engine.ErrMemory: nothing was reserved, and nothing has changed.
func (t *Table) Set(key, value []byte, expireAt int64) (added bool, err error) {
	h := t.V.Hash(key)
	number := bucket(h, t.V.Len(t.Blocks))
	b := block(t.V.Edit(t.Blocks, number))
	k := probeOf(key)
	at, found := t.find(b, tagOf(h), &k)
	state := t.state()
	if expireAt != 0 && b.items() == t.Items {
		if b.need()+b.count() > len(b) {
			return false, engine.ErrMemory
		}
		b.widen()
		state.addBytes(b.count())
	}
	if found {
		added = t.isDue(t.expireAt(b, at))
		return added, t.replace(b, at, value, expireAt)
	}
	probes := [2]probe{k}
	probes[0].hash = uint32(h)
	if t.Items > 1 {
		probes[1] = probeOf(value)
	}
	size, err := t.inside(b, probes[:t.Items], expireAt != 0)
	if err != nil {
		return false, err
	}
	t.put(b, at, tagOf(h), probes[:t.Items], size, expireAt)
	return true, nil
}

// put writes a new entry of so many bytes besides its slot, for which the block has room.
func (t *Table) put(b block, at place, tag byte, probes []probe, size int, expireAt int64) {
	slot, off := b.open(at.entry, size)
	slot[0] = tag
	off = putItems(b, slot[tagFront:], off, probes)
	t.putExpiry(b, slot[tagFront:], off, expireAt)
	state := t.state()
	state.addCount(1)
	state.addBytes(size + len(slot))
	if expireAt != 0 {
		state.addExpiring(1)
	}
	state.note(b.count())
}

// TrySet is Reserve and Set of an element that takes no memory, as most do that are there already,
// and those that fit into what is free of their block. ok is false if it is none: nothing has
// changed then.
func (t *Table) TrySet(key, value []byte, expireAt int64) (added, ok bool) {
	n := t.V.Len(t.Blocks)
	if n == 0 || len(key) > maxInside || len(value) > maxInside {
		return false, false
	}
	h := t.V.Hash(key)
	number := bucket(h, n)
	b := block(t.V.Part(t.Blocks, number))
	if expireAt != 0 && b.items() == t.Items {
		return false, false
	}
	probes := [2]probe{probeOf(key)}
	at, found := t.find(b, tagOf(h), &probes[0])
	if found && b.items() == 1 {
		return false, true // a member without a time: nothing to change
	}
	if t.Items > 1 {
		probes[1] = probeOf(value)
	}
	room := min(len(b), crowdedAt) - b.need()
	if found {
		if t.sizeOf(b, probes[1:t.Items], expireAt != 0) > room+t.entryOf(b, at).rest {
			return false, false
		}
		b = t.V.Edit(t.Blocks, number)
		added = t.isDue(t.expireAt(b, at))
		if err := t.replace(b, at, value, expireAt); err != nil {
			panic("BUG: no memory for what fits: " + err.Error())
		}
		return added, true
	}
	size, state := t.sizeOf(b, probes[:t.Items], expireAt != 0), t.state()
	more := b.slotLen() + size
	if more > room || (state.count()+1)/fullCount > n || (state.bytes()+more)/fullBytes > n {
		return false, false
	}
	t.put(t.V.Edit(t.Blocks, number), at, tagOf(h), probes[:t.Items], size, expireAt)
	return true, true
}

// inside decides which strings of a new entry stand in the block, and returns how many bytes it has
// besides its slot. The others become parts, whose numbers the probes have then.
func (t *Table) inside(b block, probes []probe, expires bool) (size int, err error) {
	size = t.sizeOf(b, probes, expires)
	if b.need()+b.slotLen()+size > crowdedAt {
		for i := range probes {
			if probes[i].size() > 8 {
				probes[i].code = codeAway
			}
		}
		size = t.sizeOf(b, probes, expires)
	}
	if b.need()+b.slotLen()+size > len(b) {
		return 0, engine.ErrMemory
	}
	return size, moveOut(t.V, t.Away, probes)
}

func (t *Table) sizeOf(b block, probes []probe, expires bool) (size int) {
	for i := range probes {
		if len(probes[i].s) > maxInside {
			probes[i].code = codeAway
		}
		size += probes[i].size()
	}
	if expires {
		size += expirySize
	}
	return size
}

// putExpiry writes the time of an entry, if its block has such items.
func (t *Table) putExpiry(b block, codes []byte, off int, expireAt int64) {
	switch {
	case len(codes) == t.Items:
	case expireAt == 0:
		codes[t.Items] = codeNone
	default:
		codes[t.Items] = codeInt + expirySize
		putTime(b[off:off+expirySize], expireAt-t.V.Base())
	}
}

// replace gives an entry another value and expiry.
func (t *Table) replace(b block, at place, value []byte, expireAt int64) error {
	old := t.entryOf(b, at)
	probes := [1]probe{}
	n := t.Items - 1
	if n > 0 {
		probes[0] = probeOf(value)
	}
	size := t.sizeOf(b, probes[:n], expireAt != 0)
	rest := b.need() - old.rest
	if rest+size > crowdedAt && n > 0 && probes[0].size() > 8 {
		probes[0].code = codeAway
		size = t.sizeOf(b, probes[:n], expireAt != 0)
	}
	if rest+size > len(b) {
		return engine.ErrMemory
	}
	if err := moveOut(t.V, t.Away, probes[:n]); err != nil {
		return err
	}
	if n > 0 && old.valueCode == codeAway {
		t.V.Free(t.Away, int(binary.LittleEndian.Uint32(b[old.off:])))
	}
	b.stretch(old.off, old.rest, size)
	codes := b.slot(at.entry)[tagFront:]
	off := putItems(b, codes[1:], old.off, probes[:n])
	t.putExpiry(b, codes, off, expireAt)
	state := t.state()
	state.addBytes(size - old.rest)
	if expireAt != 0 {
		state.addExpiring(1)
	}
	if old.expires {
		state.addExpiring(-1)
	}
	return nil
}

// entry is what an entry has behind its key.
type entry struct {
	off       int // where it begins
	rest      int // bytes
	valueCode byte
	expires   bool
}

func (t *Table) entryOf(b block, at place) (e entry) {
	codes := b.slot(at.entry)[tagFront:]
	e.off = at.off + int(stored[codes[0]])
	for _, code := range codes[1:] {
		e.rest += int(stored[code])
	}
	if t.Items > 1 {
		e.valueCode = codes[1]
	}
	e.expires = len(codes) > t.Items && codes[t.Items] != codeNone
	return e
}
