package engine

import (
	"container/list"
	"encoding/binary"
	"math/rand"
	"testing"
)

// lru is an exact least-recently-used cache of sizes.
type lru struct {
	room  int64
	order *list.List
	where map[uint64]*list.Element
}

type lruEntry struct {
	key  uint64
	cost int64
}

// read reports whether the key was there, and puts it in front.
func (l *lru) read(key uint64, cost int64) bool {
	if el, ok := l.where[key]; ok {
		l.order.MoveToFront(el)
		return true
	}
	for l.room < cost {
		last := l.order.Remove(l.order.Back()).(lruEntry)
		delete(l.where, last.key)
		l.room += last.cost
	}
	l.room -= cost
	l.where[key] = l.order.PushFront(lruEntry{key, cost})
	return false
}

// hitRatios runs a read-through cache over the keys that next yields, and returns the share of hits
// of the engine and of an exact LRU of the same memory, in which a key costs 33 bytes.
func hitRatios(t *testing.T, next func() uint64, size func(uint64) int) (got, want float64) {
	const steps = 600_000
	e := open(t, Config{MaxBytes: 12 << 20, Shards: 4})
	exact := lru{room: e.pool.max.Load() - e.fixed.Load(), order: list.New(), where: map[uint64]*list.Element{}}
	value := make([]byte, 1<<16)
	var hits, exactHits, counted float64
	for step := range steps {
		key := next()
		p, k := uint16(key*0x9E3779B97F4A7C15>>58), binary.LittleEndian.AppendUint64(nil, key)
		exactHit, hit := exact.read(key, int64(len(k)+size(key)+33)), false
		with(e, p, 1, func(x Txn) {
			if _, hit = x.Find(k); hit {
				return
			}
			if err := x.Set(k, value[:size(key)], TypeString, 0); err != nil {
				t.Fatal(err)
			}
		})
		if step < steps/3 {
			continue // still filling
		}
		counted++
		if hit {
			hits++
		}
		if exactHit {
			exactHits++
		}
	}
	return hits / counted, exactHits / counted
}

// TestHitRatio keeps eviction about as good as exact LRU, for one size of values and for many,
// which share the memory.
func TestHitRatio(t *testing.T) {
	oneGoroutine(t)
	run := func(name string, next func() uint64, size func(uint64) int, less float64) {
		got, want := hitRatios(t, next, size)
		t.Logf("%s: %.4f, exact LRU %.4f", name, got, want)
		if got < want-less {
			t.Errorf("%s: %.4f of the reads hit, with exact LRU %.4f", name, got, want)
		}
	}
	r := rand.New(rand.NewSource(1))
	zipf := rand.NewZipf(r, 1.05, 1, 1<<20)
	shift := uint64(0)
	shifting := func() uint64 { shift++; return zipf.Uint64()/4 + shift/10 }
	one := func(uint64) int { return 100 }
	mixed := func(key uint64) int { step := int(key * 2654435761 % 16); return 20 + 4*step*step }
	run("zipf, one size", zipf.Uint64, one, 0.01)
	run("zipf, many sizes", zipf.Uint64, mixed, 0.02)
	run("uniform, many sizes", func() uint64 { return uint64(r.Intn(300_000)) }, mixed, 0.02)
	run("shifting, one size", shifting, one, 0.02)
	run("shifting, many sizes", shifting, mixed, 0.04)
}
