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
		m.look(s)
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

// look looks for references to a few entries, and mostly leaves them.
func (m *rig) look(s *stream) {
	ids := make([]ID, 1+m.r.IntN(5))
	for i := range ids {
		ids[i] = m.someID()
	}
	d := removal{refs: acked}
	if m.r.IntN(4) == 0 {
		d.refs = delRef
	}
	d.begin(ids)
	for whole := false; !whole; {
		steps := 1 + m.r.IntN(10)
		whole = d.look(s, &steps)
	}
	if d.refs == acked {
		for i, id := range ids {
			if yes := d.pending&(1<<i) != 0 || d.undelivered.less(id); yes != m.want.refers(id) {
				m.tb.Fatalf("entry %v is referenced: %t", id, yes)
			}
		}
		return
	}
	for name, want := range m.want.groups {
		for _, id := range ids {
			delete(want.pending, id)
		}
		if g, _ := s.group([]byte(name)); g.pending != len(want.pending) {
			m.tb.Fatalf("%d entries are pending in %q, want %d", g.pending, name, len(want.pending))
		}
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
