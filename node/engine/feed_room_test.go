package engine

import (
	"encoding/binary"
	"math/rand"
	"testing"
)

// crowdedMove is two nodes of a cache under one load, which are full, and of which one leaves.
type crowdedMove struct {
	t       *testing.T
	zipf    *rand.Zipf
	leaving *Engine // has the partitions below half
	staying *Engine
}

const (
	movedPartitions = 32
	allPartitions   = 64
	movedMemory     = 8 << 20
)

func newCrowdedMove(t *testing.T) *crowdedMove {
	cfg := Config{MaxBytes: movedMemory, Shards: 4}
	return &crowdedMove{
		t: t, zipf: rand.NewZipf(rand.New(rand.NewSource(1)), 1.05, 1, 1<<20),
		leaving: open(t, cfg), staying: open(t, cfg),
	}
}

// request is the next key and its partition.
func (m *crowdedMove) request() (uint16, []byte) {
	key := m.zipf.Uint64()
	return uint16(key * 0x9E3779B97F4A7C15 >> 58), binary.LittleEndian.AppendUint64(nil, key)
}

// load has the engine that at names for each partition, nil for none, used as a read-through cache.
func (m *crowdedMove) load(steps int, at func(p uint16) *Engine) {
	value := make([]byte, 100)
	for range steps {
		p, key := m.request()
		e := at(p)
		if e == nil {
			continue
		}
		with(e, p, 1, func(x Txn) {
			if _, hit := x.Find(key); hit {
				return
			}
			if err := x.Set(key, value, TypeString, 0); err != nil {
				m.t.Fatal(err)
			}
		})
	}
}

// ratio is the share of requests for the partitions from first to last that would hit.
func (m *crowdedMove) ratio(first, last uint16, at func(p uint16) *Engine) float64 {
	hits, counted := 0.0, 0.0
	for range 200_000 {
		p, key := m.request()
		if p < first || p >= last {
			continue
		}
		counted++
		with(at(p), p, 1, func(x Txn) {
			if _, hit := x.Peek(key); hit {
				hits++
			}
		})
	}
	return hits / counted
}

// move moves the partitions of the node that leaves to another.
func (m *crowdedMove) move(to *Engine) {
	m.leaving.OpenFeed(0, func() {})
	for p := range uint16(movedPartitions) {
		m.leaving.Feed(p, 0, Mark{})
		for cursor, done := uint64(0), false; !done; {
			cursor, done = m.leaving.Snapshot(p, 0, cursor, 64<<10, 1)
			follow(m.t, m.leaving, to, 0, 0, 1, &takesAll{})
		}
	}
	m.leaving.CloseFeed(0)
}

func (m *crowdedMove) both(p uint16) *Engine {
	if p < movedPartitions {
		return m.leaving
	}
	return m.staying
}

// only is one engine for all partitions.
func only(e *Engine) func(uint16) *Engine { return func(uint16) *Engine { return e } }

// What moves to a full node competes with what is there: right after the move there is about what
// the node's own eviction would have kept, had it served all from the start.
func TestMoveToFullNodeKeepsWhatIsUsed(t *testing.T) {
	oneGoroutine(t)
	m := newCrowdedMove(t)
	const steps = 600_000
	m.load(steps, m.both)
	alone := open(t, Config{MaxBytes: movedMemory, Shards: 4})
	m.load(steps, only(alone))
	before, want := m.ratio(0, allPartitions, m.both), m.ratio(0, allPartitions, only(alone))
	m.move(m.staying)
	got := m.ratio(0, allPartitions, only(m.staying))
	moved := m.ratio(0, movedPartitions, only(m.staying))
	own := m.ratio(movedPartitions, allPartitions, only(m.staying))
	t.Logf("of the reads hit %.3f with both, %.3f after the move (what moved %.3f, the others %.3f), %.3f in one of that size", before, got, moved, own, want)
	if got < want-0.05 {
		t.Errorf("%.3f of the reads hit after the move, want about %.3f", got, want)
	}
	if moved < want-0.1 {
		t.Errorf("%.3f of the reads of what has moved hit, want about %.3f", moved, want)
	}
	m.staying.checkSums(t)
}

// Of copies for which there is not room enough, about what the owner's own eviction would keep in
// that room.
func TestCopiesKeepWhatIsUsed(t *testing.T) {
	oneGoroutine(t)
	m := newCrowdedMove(t)
	const steps = 600_000
	moved := func(e *Engine) func(uint16) *Engine {
		return func(p uint16) *Engine {
			if p < movedPartitions {
				return e
			}
			return nil
		}
	}
	m.load(steps, moved(m.leaving))
	room, small := open(t, Config{MaxBytes: movedMemory / 2, Shards: 4}), open(t, Config{MaxBytes: movedMemory / 2, Shards: 4})
	m.load(steps, moved(small))
	for p := range uint16(movedPartitions) {
		room.SetCopy(p, SpareCopy)
	}
	m.move(room)
	before, got := m.ratio(0, movedPartitions, only(m.leaving)), m.ratio(0, movedPartitions, only(room))
	want := m.ratio(0, movedPartitions, only(small))
	t.Logf("of the reads hit %.3f at the owner, %.3f in the copy, %.3f in an owner of that size", before, got, want)
	if got < want-0.05 {
		t.Errorf("%.3f of the reads would hit in the copy, want about %.3f", got, want)
	}
	room.checkSums(t)
}
