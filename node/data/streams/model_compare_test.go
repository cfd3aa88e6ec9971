package streams

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// compare compares the stream of an engine with the model.
func (m *rig) compare(e *engine.Engine) {
	m.tb.Helper()
	m.with(e, func(s *stream) {
		if s.found != (m.want != nil) {
			m.tb.Fatalf("the stream is there: %t", s.found)
		}
		if s.found {
			m.compareView(&s.view)
			if s.isBig {
				if err := s.big.check(); err != nil {
					m.tb.Fatal(err)
				}
			}
		}
	})
}

func (m *rig) compareView(v *view) {
	m.tb.Helper()
	got := v.info()
	want := m.want.meta
	if len(m.want.entries) > 0 {
		want.first = m.want.entries[0].id
	}
	if got != want || v.len() != len(m.want.entries) {
		m.tb.Fatalf("a stream of %d entries with %+v, want %d, %+v", v.len(), got, len(m.want.entries), want)
	}
	from := minID
	if m.r.IntN(3) == 0 {
		from = m.someID()
	}
	at, _ := m.want.at(from)
	v.each(from, func(id ID, e entry) bool {
		m.compareEntry(at, id, &e)
		at++
		return true
	})
	if at != len(m.want.entries) {
		m.tb.Fatalf("a walk from %v ends at %d of %d", from, at, len(m.want.entries))
	}
	there := false
	if from.isZero() {
		from, at = maxID, len(m.want.entries)
	} else if at, there = m.want.at(from); there {
		at++
	}
	v.eachBack(from, func(id ID, e entry) bool {
		at--
		m.compareEntry(at, id, &e)
		return true
	})
	if at != 0 {
		m.tb.Fatalf("a walk back from %v ends at %d", from, at)
	}
	if e, found := v.entry(from); found != there && from != maxID || found && e.strings() == 0 {
		m.tb.Fatalf("entry %v is there: %t, found: %t", from, there, found)
	}
	m.compareGroups(v)
}

func (m *rig) compareEntry(at int, id ID, e *entry) {
	if at < 0 || at >= len(m.want.entries) || m.want.entries[at].id != id {
		m.tb.Fatalf("entry %d is %v", at, id)
	}
	want, got := m.want.entries[at].fields, []string{}
	var here spot
	for len(got) < e.strings() { // in steps
		left := 1 + m.r.IntN(50)
		e.eachFrom(&here, func(i int, s shape.Item) bool {
			if left--; left < 0 {
				return false
			}
			if i != len(got) {
				m.tb.Fatalf("string %d comes as %d", len(got), i)
			}
			got = append(got, string(s.Append(nil)))
			return true
		})
	}
	if !slices.Equal(want, got) {
		m.tb.Fatalf("entry %v has %d strings, want %d, or others", id, len(got), len(want))
	}
}

func (m *rig) compareGroups(v *view) {
	names := slices.Sorted(maps.Keys(m.want.groups))
	at := 0
	v.eachGroup(nil, func(g *group) bool {
		m.compareGroup(v, g, names[at])
		at++
		return true
	})
	if at != len(names) || v.groups() != at {
		m.tb.Fatalf("%d groups, counted %d, want %d", at, v.groups(), len(names))
	}
	if at > 1 {
		v.eachGroup([]byte(names[at/2]), func(g *group) bool {
			at++
			return true
		})
		if at != len(names)+len(names)-1-len(names)/2 {
			m.tb.Fatalf("groups behind the %dth of %d: %d", len(names)/2, len(names), at-len(names))
		}
	}
}

func (m *rig) compareGroup(v *view, g *group, name string) {
	want := m.want.groups[name]
	if string(g.name) != name || g.last != want.last || g.read != want.read ||
		g.pending != len(want.pending) || g.consumers != len(want.consumers) {
		m.tb.Fatalf("a group has %+v, want %q, %+v", g, name, want)
	}
	names, at := slices.Sorted(maps.Keys(want.consumers)), 0
	v.eachConsumer(g, nil, func(c *consumer) bool {
		if at >= len(names) || string(c.name) != names[at] || m.consumer(c) != want.consumers[names[at]] {
			m.tb.Fatalf("consumer %d of %d is %+v", at, len(names), c)
		}
		m.comparePending(v, g, c, want)
		at++
		return true
	})
	if at != len(names) {
		m.tb.Fatalf("%d consumers, want %d", at, len(names))
	}
	m.comparePending(v, g, nil, want)
}

// consumer is what the model has of a consumer.
func (m *rig) consumer(c *consumer) modelConsumer {
	x := modelConsumer{c.seen - m.shift, c.active}
	if x.active != never {
		x.active -= m.shift
	}
	return x
}

func (m *rig) comparePending(v *view, g *group, c *consumer, want *modelGroup) {
	var ids []ID
	for id, p := range want.pending {
		if c == nil || p.consumer == string(c.name) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, ID.compare)
	at := 0
	v.eachPending(g, c, minID, func(p pending) bool {
		if p.delivered < g.oldest {
			m.tb.Fatalf("%v was delivered at %d, before the oldest, %d", p.id, p.delivered, g.oldest)
		}
		if at >= len(ids) || p.id != ids[at] ||
			(modelPending{string(v.consumerName(g, p.consumer)), p.delivered - m.shift, p.count}) != want.pending[p.id] {
			m.tb.Fatalf("pending entry %d of %d is %+v, want %+v", at, len(ids), p, want.pending[p.id])
		}
		at++
		return true
	})
	if at != len(ids) || c != nil && c.pending != at {
		m.tb.Fatalf("%d entries are pending, want %d; a consumer counts %v", at, len(ids), c)
	}
	first, last, found := v.pendingEnds(g)
	if c == nil && (found != (at > 0) || found && (first != ids[0] || last != ids[at-1])) {
		m.tb.Fatalf("pending are %v to %v of %v", first, last, ids)
	}
}

// check walks through a big stream and reports what does not fit together.
func (b *big) check() error {
	m := b.keys()
	if err := m.Check(); err != nil {
		return err
	}
	entries, blocks, away := 0, 0, 0
	last := ID{}
	for c := m.Seek(blockPrefix); c.HasPrefix(blockPrefix); c.Next() {
		number := int(c.Value()[0]) | int(c.Value()[1])<<8 | int(c.Value()[2])<<16
		blk := block(b.v.Part(planeBlocks, number))
		if !blk.check(true) || blk.live() == 0 {
			return fmt.Errorf("block %d of %d bytes is malformed", number, len(blk))
		}
		if first := keyID(c.AppendKey(nil)[1:]); first != blk.first() || entries > 0 && !last.less(first) {
			return fmt.Errorf("block %d begins with %v, its key says %v, the last ID was %v", number, blk.first(), first, last)
		}
		last = blk.last().id
		entries += blk.live()
		blocks++
		for at := blk.begin(); at < blk.used(); {
			x := blk.entry(at)
			if at = x.end; x.kind == kindAway {
				away += 1 + int(x.body[partNumber])
			}
		}
		if tail, _ := b.tail(); (tail == number) != (blk.last().id == b.lastOf(&m)) {
			return fmt.Errorf("block %d: the tail is %d", number, tail)
		}
	}
	if got, want := [...]int{entries, blocks, away}, [...]int{b.len(), b.v.Count(planeBlocks), b.v.Count(planeAway)}; got != want {
		return fmt.Errorf("a stream has entries, blocks and parts %d, counted %d", want, got)
	}
	keys := blocks + 2*b.groups()
	all := math.MaxInt
	b.eachNumber(0, &all, func(g group) bool {
		keys += 2*g.consumers + 2*g.pending
		return true
	})
	if got := m.Len(); got < keys || got > keys && b.gone() == 0 {
		return fmt.Errorf("a stream has %d keys, want %d", got, keys)
	}
	return nil
}

// lastOf is the last ID in the last block.
func (b *big) lastOf(m *shape.Ordered) ID {
	var key mapKey
	c := m.SeekBack(key.block(maxID))
	number := int(c.Value()[0]) | int(c.Value()[1])<<8 | int(c.Value()[2])<<16
	return block(b.v.Part(planeBlocks, number)).last().id
}
