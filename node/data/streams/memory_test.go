package streams

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

func (m *modelStream) clone() *modelStream {
	if m == nil {
		return nil
	}
	c := *m
	c.entries = append([]modelEntry{}, m.entries...)
	c.groups = map[string]*modelGroup{}
	for name, g := range m.groups {
		x := *g
		x.consumers, x.pending = maps.Clone(g.consumers), maps.Clone(g.pending)
		c.groups[name] = &x
	}
	return &c
}

// fill fills an engine with strings, and makes room for some values again: a few pages and many cells.
func fill(tb testing.TB, e *engine.Engine) (strings int) {
	t := e.Lock(testPartition+1, 1)
	defer t.Unlock()
	for i := 0; ; i++ {
		if err := t.Set(fmt.Append(nil, "string:", i), pattern(1, 200), engine.TypeString, 0); err != nil {
			for j := range 300 {
				t.Delete(fmt.Append(nil, "string:", i-j-1))
			}
			return i - 300
		}
	}
}

// Without memory a change leaves the stream as it was.
func TestModelWithoutMemory(t *testing.T) {
	histories := 30
	if testing.Short() {
		histories = 6
	}
	full := 0
	for range histories {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		m := newRig(t, seed)
		m.owner = openTestEngine(t, 4<<20, engine.NoEviction)
		m.most, m.scarce = 100_000, true
		strings := fill(t, m.owner)
		for i := range 1500 {
			m.change()
			if i%50 == 0 {
				m.compare(m.owner)
				x := m.owner.Lock(testPartition+1, 1)
				x.Delete(fmt.Append(nil, "string:", m.r.IntN(strings)))
				x.Unlock()
			}
		}
		m.compare(m.owner)
		full += m.full
	}
	if full == 0 {
		t.Error("there was always memory")
	}
}

// Without memory for a group there is no stream either, at whatever place the memory ends.
func TestMakeGroupWithoutMemory(t *testing.T) {
	m := newRig(t, 1)
	m.owner = openTestEngine(t, 4<<20, engine.NoEviction)
	name, strings := pattern(1, maxName), fill(t, m.owner)
	x := m.owner.Lock(testPartition+1, 1)
	for i := 0; x.Set(fmt.Append(nil, "small:", i), pattern(1, 20), engine.TypeString, 0) == nil; i++ {
	}
	x.Unlock()
	failed := 0
	for made := false; !made; {
		m.with(m.owner, func(s *stream) {
			err := s.makeGroup(name, minID, readUnknown)
			made = !m.failed(err)
			if closed := s.close(); err == nil && closed != nil {
				t.Fatal(closed)
			}
		})
		if m.with(m.owner, func(s *stream) {
			if s.found != made {
				t.Fatalf("after %d failures, there is a stream: %t", failed, s.found)
			}
		}); made {
			break
		}
		failed++
		x := m.owner.Lock(testPartition+1, 1)
		strings--
		x.Delete(fmt.Append(nil, "small:", failed))
		if failed > 1000 {
			x.Delete(fmt.Append(nil, "string:", strings))
		}
		x.Unlock()
	}
	if failed == 0 {
		t.Error("there was always memory")
	}
}
