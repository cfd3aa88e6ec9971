package engine

import (
	"errors"
	"maps"
	"slices"
)

// What lasts several operations of a model: drops, pins, staged values, and partitions that move.

// drop drops a partition.
func (m *model) drop(p uint16) {
	before := m.e.Count(p)
	if n := m.e.Drop(p); n != before || m.e.Count(p) != 0 {
		m.tb.Fatalf("dropped %d keys of %d, %d are left", n, before, m.e.Count(p))
	}
	m.forgotten(func(section uint16) bool { return PartitionOf(section) == p })
}

// clear drops a section.
func (m *model) clear(p uint16) {
	all, before := m.e.Count(PartitionOf(p)), m.e.CountSection(p)
	if n := m.e.Clear(p); n != before || m.e.CountSection(p) != 0 || m.e.Count(PartitionOf(p)) != all-n {
		m.tb.Fatalf("dropped %d keys of %d, %d are left, %d of %d in the partition", n, before, m.e.CountSection(p), m.e.Count(PartitionOf(p)), all)
	}
	m.forgotten(func(section uint16) bool { return section == p })
}

// forgotten notes that the keys of sections are gone.
func (m *model) forgotten(of func(section uint16) bool) {
	maps.DeleteFunc(m.shadow, func(k modelKey, _ modelValue) bool { return of(k.p) })
}

// beginDrop leaves what is dropped to be freed between other operations.
func (m *model) beginDrop(p uint16) {
	before, s := m.e.CountSection(p), m.e.shardOf(p)
	all, keys := s.dropped.doomAll(onlyOf(p))
	if keys != before || m.e.CountSection(p) != 0 {
		m.tb.Fatalf("dropped %d keys of %d, %d are left", keys, before, m.e.CountSection(p))
	}
	for _, d := range all {
		m.drops = append(m.drops, modelDrop{s, d})
	}
	m.forgotten(func(section uint16) bool { return section == p })
}

// forget leaves what is dropped to be freed by whoever needs memory, or sweeps.
func (m *model) forget(p uint16) {
	if m.e.Forget(p); m.e.Count(p) != 0 {
		m.tb.Fatalf("%d keys are left", m.e.Count(p))
	}
	m.forgotten(func(section uint16) bool { return PartitionOf(section) == p })
}

// goOnDropping frees a few records of one of the drops under way.
func (m *model) goOnDropping(which, records int) {
	if len(m.drops) == 0 {
		return
	}
	which %= len(m.drops)
	if m.drops[which].s.dropped.drainSlice(m.drops[which].d, records) {
		m.drops = slices.Delete(m.drops, which, which+1)
	}
}

// pin pins the value of k, if that is large.
func (m *model) pin(k modelKey) {
	m.with(k, func(t Txn) {
		item, ok := t.Find([]byte(k.key))
		if !ok {
			return
		}
		if pin, ok := t.Pin(item); ok {
			m.pins = append(m.pins, modelPin{pin, string(item.Value())})
			if !pin.Holds(item) {
				m.tb.Fatalf("the pin of %q is not of its item", k.key)
			}
		}
	})
}

// unpin checks that the value pinned first is what it was.
func (m *model) unpin() {
	if len(m.pins) == 0 {
		return
	}
	p := m.pins[0]
	m.pins = m.pins[1:]
	if string(p.pin.Value()) != p.want {
		m.tb.Fatalf("a pinned value of %d bytes has changed", len(p.want))
	}
	p.pin.Release()
}

// stage begins a large value.
func (m *model) stage(k modelKey, v modelValue) {
	if !m.e.IsLarge(len(k.key), len(v.value)) {
		return
	}
	st, err := m.e.Stage(k.p, []byte(k.key), len(v.value))
	if err == nil {
		m.staged = append(m.staged, modelStaged{st, k, v})
	} else if !errors.Is(err, ErrMemory) {
		m.tb.Fatal(err)
	}
}

// stageOn writes n bytes of the value staged first, and publishes it when they were the last.
func (m *model) stageOn(n int) {
	if len(m.staged) == 0 {
		return
	}
	s := &m.staged[0]
	n = min(n, s.staged.Left())
	err := s.staged.Write([]byte(s.want.value[len(s.want.value)-s.staged.Left():][:n]))
	if err == nil && s.staged.Left() > 0 {
		return
	}
	if err == nil {
		m.with(s.k, func(t Txn) { err = t.SetStaged(&s.staged, s.want.typ, s.want.expireAt) })
	}
	if err == nil {
		m.shadow[s.k] = s.want
	} else {
		s.staged.Discard()
	}
	m.staged = m.staged[1:]
}

// letGo ends all pins and staged values.
func (m *model) letGo() {
	for len(m.pins) > 0 {
		m.unpin()
	}
	for i := range m.staged {
		m.staged[i].staged.Discard()
	}
	m.staged = nil
}

// install makes section to a copy of what from has.
func (m *model) install(from, to uint16) {
	m.clear(to)
	source := map[string]modelValue{}
	for cursor, done := uint64(0), false; !done; {
		cursor, done = m.e.Walk(from, cursor, 10, m.now, func(item Item) bool {
			source[string(item.Key())] = modelValue{string(item.Value()), item.Type(), item.ExpireAt()}
			return true
		})
	}
	for _, key := range slices.Sorted(maps.Keys(source)) {
		m.set(modelKey{to, key}, source[key])
	}
}
