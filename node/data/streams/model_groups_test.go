package streams

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
)

func (m *rig) createGroup(s *stream) {
	name, last := m.name("group"), m.someID()
	if _, there := s.group([]byte(name)); there != (m.want.groups[name] != nil) {
		m.tb.Fatalf("group %q is there: %t", name, there)
	} else if there {
		return
	}
	g, err := s.createGroup([]byte(name), last, readUnknown)
	if m.failed(err) {
		return
	}
	m.want.groups[name] = newModelGroup(last)
	m.compareGroup(&s.view, &g, name)
}

func newModelGroup(last ID) *modelGroup {
	return &modelGroup{last, readUnknown, map[string]modelConsumer{}, map[ID]modelPending{}}
}

// someOf is any key of a map.
func someOf[K cmp.Ordered, V any](r *rand.Rand, all map[K]V) (k K, ok bool) {
	if len(all) == 0 {
		return k, false
	}
	return slices.Sorted(maps.Keys(all))[r.IntN(len(all))], true
}

func (m *rig) stepGroup(s *stream) {
	name, ok := someOf(m.r, m.want.groups)
	if !ok {
		return
	}
	want := m.want.groups[name]
	g, found := s.group([]byte(name))
	if !found {
		m.tb.Fatalf("group %q is gone", name)
	}
	switch n := m.r.IntN(100); {
	case n < 4:
		s.destroyGroup(&g)
		delete(m.want.groups, name)
	case n < 10:
		g.last, g.read = m.someID(), int64(m.r.IntN(5))-1
		if !m.failed(s.setGroup(&g)) {
			want.last, want.read = g.last, g.read
		}
	case n < 20:
		m.createConsumer(s, &g, want)
	case n < 26:
		if id := m.someID(); m.r.IntN(4) == 0 {
			m.dereference(s, id)
		} else if yes, _ := s.referenced(id, 0, 1000); yes != m.want.refers(id) {
			m.tb.Fatalf("entry %v is referenced: %t", id, yes)
		}
	default:
		m.stepConsumer(s, &g, want)
	}
}

func (m *modelStream) refers(id ID) bool {
	for _, g := range m.groups {
		if _, there := g.pending[id]; there || g.last.less(id) {
			return true
		}
	}
	return false
}

func (m *rig) dereference(s *stream, id ID) {
	want, got := 0, 0
	for _, g := range m.want.groups {
		if _, there := g.pending[id]; there {
			delete(g.pending, id)
			want++
		}
	}
	for next, first := uint32(0), true; first || next != 0; first = false {
		var removed int
		removed, next = s.dereference(id, next, 1+m.r.IntN(3))
		got += removed
	}
	if got != want {
		m.tb.Fatalf("%d references to %v, want %d", got, id, want)
	}
}

func (m *rig) createConsumer(s *stream, g *group, want *modelGroup) {
	name := m.name("consumer")
	c, there := s.consumer(g, []byte(name))
	if _, should := want.consumers[name]; there != should {
		m.tb.Fatalf("consumer %q is there: %t", name, there)
	} else if there {
		c.seen, c.active = m.now, m.now+int64(m.r.IntN(3))
		if m.r.IntN(2) == 0 {
			c.active = never
		}
		if !m.failed(s.setConsumer(g, &c)) {
			want.consumers[name] = modelConsumer{c.seen, c.active}
		}
		return
	}
	if c, err := s.createConsumer(g, []byte(name), m.now); !m.failed(err) {
		want.consumers[name] = modelConsumer{c.seen, c.active}
		if c.seen != m.now || c.active != never {
			m.tb.Fatalf("a new consumer has %+v", c)
		}
	}
}

func (m *rig) stepConsumer(s *stream, g *group, want *modelGroup) {
	name, ok := someOf(m.r, want.consumers)
	if !ok {
		return
	}
	c, found := s.consumer(g, []byte(name))
	if !found {
		m.tb.Fatalf("consumer %q is gone", name)
	}
	switch n := m.r.IntN(100); {
	case n < 4:
		removed := 0
		for done := false; !done; {
			var n int
			n, done = s.deleteConsumer(g, &c, 1+m.r.IntN(30))
			removed += n
		}
		delete(want.consumers, name)
		for id, p := range want.pending {
			if p.consumer == name {
				delete(want.pending, id)
				removed--
			}
		}
		if removed != 0 {
			m.tb.Fatalf("%d entries too many were pending for %q", removed, name)
		}
	case n < 70:
		for range 1 + m.r.IntN(5) {
			p := pending{id: m.someID(), delivered: m.now - int64(m.r.IntN(100)), count: m.r.Uint64() >> m.r.IntN(64)}
			if !m.failed(s.setPending(g, &c, p)) {
				want.pending[p.id] = modelPending{name, p.delivered, p.count}
			}
		}
	default:
		for range 1 + m.r.IntN(8) {
			id := m.someID()
			if ids := slices.SortedFunc(maps.Keys(want.pending), ID.compare); len(ids) > 0 && m.r.IntN(4) > 0 {
				id = ids[m.r.IntN(len(ids))]
			}
			_, there := want.pending[id]
			if s.ack(g, id) != there {
				m.tb.Fatalf("entry %v is pending: %t", id, there)
			}
			delete(want.pending, id)
		}
	}
	if g.pending != len(want.pending) {
		m.tb.Fatalf("%d entries are pending, want %d", g.pending, len(want.pending))
	}
}
