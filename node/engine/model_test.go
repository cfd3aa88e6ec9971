package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var modelSeed = flag.Uint64("model.seed", 0, "repeat what TestModel did with this seed")

// model runs the same operations on an engine and on a plain map. Where the engine may evict, what
// it finds must be what the map has, and what it does not find is forgotten by the map too. Without
// eviction they must be equal.
type model struct {
	tb      testing.TB
	e       *Engine
	shadow  map[modelKey]modelValue
	now     int64
	seed    uint64
	copies  map[uint16]CopyKind // by partition
	limit   int64               // at first
	exact   bool                // nothing may be missing
	over    bool                // a lowered limit is not reached: not everything may be evicted
	evicted int64               // before the last reset
	selects int
	drops   []modelDrop
	pins    []modelPin
	staged  []modelStaged
}

// modelDrop is a Drop under way.
type modelDrop struct {
	s *shard
	d *doomed
}

type modelPin struct {
	pin  Pin
	want string
}

type modelStaged struct {
	staged Staged
	k      modelKey
	want   modelValue
}

type modelKey struct {
	p   uint16 // its section
	key string
}

// The model's keys are in a few partitions, in three databases each.
const (
	modelPartitions = 8
	modelSections   = 3 * modelPartitions
)

func modelSection(n uint32) uint16 {
	return Section(uint16(n%modelPartitions), [...]uint8{0, 1, Databases - 1}[n/modelPartitions%3])
}

// with locks the section of k, or has a Txn of another one of its partition select it.
func (m *model) with(k modelKey, f func(t Txn)) {
	from := k.p
	if m.selects++; m.selects%3 == 0 {
		from = Section(PartitionOf(k.p), uint8(m.selects%Databases))
	}
	with(m.e, from, m.now, func(t Txn) { f(t.Select(DatabaseOf(k.p))) })
}

type modelValue struct {
	value    string
	typ      Type
	expireAt int64
}

func newModel(tb testing.TB, cfg Config) *model {
	return &model{tb: tb, e: open(tb, cfg), shadow: map[modelKey]modelValue{}, copies: map[uint16]CopyKind{}, now: 1_000_000, limit: cfg.MaxBytes, exact: cfg.Policy == NoEviction}
}

// expect is what the engine shows of k, if it has it: nothing that has expired.
func (m *model) expect(k modelKey) (modelValue, bool) {
	v, ok := m.shadow[k]
	return v, ok && !m.hasExpired(k, v)
}

// hasExpired reports whether the engine shows v no more. The record may stay there until it is swept, and is
// shown again if its partition becomes a copy before, so the model remembers it.
func (m *model) hasExpired(k modelKey, v modelValue) bool {
	return expired(v.expireAt, m.now) && m.copies[PartitionOf(k.p)] == NoCopy
}

// missing notes that the engine does not show k.
func (m *model) missing(k modelKey, what string) {
	v, ok := m.shadow[k]
	switch {
	case ok && m.hasExpired(k, v):
		return
	case ok && m.exact:
		m.tb.Fatalf("%s: %q of section %d is gone", what, k.key, k.p)
	}
	delete(m.shadow, k)
}

func (m *model) check(k modelKey, item Item, what string) {
	m.tb.Helper()
	v, ok := m.expect(k)
	got := modelValue{string(item.Value()), item.Type(), item.ExpireAt()}
	if !ok || got != v || string(item.Key()) != k.key {
		m.tb.Fatalf("%s %q of section %d: got %.60q of type %d, expiring at %d, want %.60q of %d, %d, known %t", what, k.key, k.p, got.value, got.typ, got.expireAt, v.value, v.typ, v.expireAt, ok)
	}
}

func (m *model) find(k modelKey) {
	m.with(k, func(t Txn) {
		if item, ok := t.Find([]byte(k.key)); ok {
			m.check(k, item, "find")
		} else {
			m.missing(k, "find")
		}
	})
}

func (m *model) set(k modelKey, v modelValue) {
	m.with(k, func(t Txn) {
		err := t.Set([]byte(k.key), []byte(v.value), v.typ, v.expireAt)
		switch {
		case err == nil:
			m.shadow[k] = v
		case !errors.Is(err, ErrMemory):
			m.tb.Fatal(err)
		case m.everythingFits():
			m.tb.Fatalf("cannot set %d bytes: %v, %+v, used %d of %d, over %t", len(v.value), err, m.e.sumsForTest(), m.e.Used(), m.e.MaxBytes(), m.over)
		}
	})
}

// everythingFits reports whether nothing may be refused for want of memory: nothing holds much that
// cannot be evicted.
func (m *model) everythingFits() bool {
	return m.e.Policy() == AllKeys && len(m.pins)+len(m.staged) == 0
}

func (m *model) resize(k modelKey, n int, fill byte) {
	m.with(k, func(t Txn) {
		view, err := t.Resize([]byte(k.key), n)
		if errors.Is(err, ErrNotFound) {
			m.missing(k, "resize")
			return
		}
		v, ok := m.expect(k)
		if !ok {
			m.tb.Fatalf("resize: %q should not be there: %v", k.key, err)
		}
		if err != nil {
			if m.everythingFits() || !errors.Is(err, ErrMemory) {
				m.tb.Fatal(err)
			}
			return
		}
		want := append([]byte(v.value), make([]byte, max(0, n-len(v.value)))...)[:n]
		if !bytes.Equal(view, want) {
			m.tb.Fatalf("resize of %q to %d: wrong bytes", k.key, n)
		}
		for i := n / 2; i < n; i++ {
			view[i], want[i] = fill, fill
		}
		v.value = string(want)
		m.shadow[k] = v
	})
}

func (m *model) setExpire(k modelKey, at int64) {
	m.with(k, func(t Txn) {
		if !t.SetExpire([]byte(k.key), at) {
			if m.everythingFits() {
				m.missing(k, "expire")
			}
			return
		}
		v, ok := m.expect(k)
		if !ok {
			m.tb.Fatalf("expire: %q should not be there", k.key)
		}
		v.expireAt = at
		m.shadow[k] = v
	})
}

func (m *model) delete(k modelKey) {
	m.with(k, func(t Txn) {
		deleted := t.Delete([]byte(k.key))
		if _, ok := m.expect(k); deleted && !ok || !deleted && ok && m.exact {
			m.tb.Fatalf("delete of %q: got %t, model has it: %t", k.key, deleted, ok)
		}
		delete(m.shadow, k)
	})
}

// walk visits the section wholly and compares both ways.
func (m *model) walk(p uint16, max int) {
	seen := map[string]bool{}
	for cursor, done := uint64(0), false; !done; {
		cursor, done = m.e.Walk(p, cursor, max, m.now, func(item Item) bool {
			m.check(modelKey{p, string(item.Key())}, item, "walk")
			if seen[string(item.Key())] {
				m.tb.Fatalf("walk met %q twice", item.Key())
			}
			seen[string(item.Key())] = true
			return true
		})
	}
	for k := range m.shadow {
		if k.p == p && !seen[k.key] {
			m.missing(k, "walk")
		}
	}
}

// setLimit changes the limit to a part of what it was at first, in 256ths.
func (m *model) setLimit(part uint32) {
	limit := m.limit / 256 * int64(part)
	if m.e.checkLimit(limit) != nil {
		return
	}
	err := m.e.SetMaxBytes(limit)
	if err != nil && (m.everythingFits() || !errors.Is(err, ErrMemory)) {
		m.tb.Fatal(err)
	}
	m.over = err != nil
}

func (m *model) reset(seed uint64) {
	m.evicted += m.e.Stats().Evicted
	m.e.Reset(seed)
	m.seed = seed
	clear(m.shadow)
	m.letGo()
	m.e.Reset(seed)
	if st := m.e.Stats(); st.Used != st.Fixed+st.Feeds || st.Keys != 0 {
		m.tb.Fatalf("after a reset: %+v", st)
	}
}

// step does one operation, of which op is the kind and a and b say on what.
func (m *model) step(op byte, a, b uint32) {
	k := modelKey{modelSection(a), fmt.Sprintf("key:%d", a/modelSections%400)}
	if PartitionOf(k.p) == 0 {
		k.key = sameTag(m.seed, int(a/modelSections%400))
	}
	switch {
	case op < 110:
		m.set(k, modelValue{modelBytes(b), Type(1 + b%5), m.someExpiry(b)})
	case op < 190:
		m.find(k)
	case op < 205:
		m.resize(k, modelLen(b), byte(b))
	case op < 215:
		m.setExpire(k, m.someExpiry(b))
	case op < 240:
		m.delete(k)
	case op < 246:
		m.now += int64(b % 1000)
	case op < 249:
		m.e.Sweep(m.now, int(b%100))
	case op < 252:
		m.stepLarge(modelKey{k.p, fmt.Sprint("big:", a>>16%4)}, a>>24, b)
	case op < 254:
		m.walk(k.p, int(b%100)+1)
	default:
		m.stepMuch(k.p, b%32, b>>8)
	}
	if b%16 == 0 {
		m.goOnDropping(int(b>>16), int(b>>8%8))
	}
	used, limit := m.e.Used(), m.e.MaxBytes()
	if m.over = m.over && used > limit; used > limit && !m.over {
		m.tb.Fatalf("%d bytes are used of %d", used, limit)
	}
}

// stepMuch does one operation of those that change much at once.
func (m *model) stepMuch(p uint16, op, b uint32) {
	switch op {
	case 0:
		if b%2 == 0 {
			m.drop(PartitionOf(p))
		} else {
			m.clear(p)
		}
	case 1:
		m.beginDrop(p)
	case 2:
		m.install(p, modelSection(b))
	case 3, 4, 5:
		m.setLimit(128 + b%128)
	case 6, 7, 8:
		if !m.exact {
			m.e.SetPolicy(Policy(b % 3))
		}
	case 9:
		if b%4 == 0 {
			m.reset(uint64(b))
		}
	case 10, 11:
		if !m.exact {
			p := PartitionOf(p)
			m.copies[p] = CopyKind(b % 4 % 3)
			m.e.SetCopy(p, m.copies[p])
		}
	case 12:
		m.forget(PartitionOf(p))
	}
}

// stepLarge does one operation of those on large values only.
func (m *model) stepLarge(k modelKey, a, b uint32) {
	const atOnce = 3
	if len(m.pins) >= atOnce {
		m.unpin()
	}
	if len(m.staged) >= atOnce {
		m.stageOn(math.MaxInt)
	}
	v := modelValue{modelBytes(b &^ 511), Type(1 + b%5), m.someExpiry(b)}
	switch a % 5 {
	case 0:
		m.stage(k, v)
	case 1:
		m.stageOn(int(b % 100_000))
	case 2:
		m.set(k, v)
	case 3:
		m.resize(k, len(v.value), byte(b))
	case 4:
		m.pin(k)
		if b%4 == 0 {
			m.unpin()
		}
	}
}

// finish compares everything, and the sums with what is there.
func (m *model) finish() {
	for n := range uint32(modelSections) {
		m.walk(modelSection(n), 50)
	}
	m.e.checkSums(m.tb)
	m.e.checkCounts(m.tb)
	for len(m.drops) > 0 {
		m.goOnDropping(0, 100)
	}
	m.letGo()
	m.e.checkSums(m.tb)
}

func (m *model) someExpiry(b uint32) int64 {
	if b%3 != 0 {
		return 0
	}
	return m.now + int64(b>>8%5000) - 100
}

// modelLen is mostly small, sometimes too large for a cell.
func modelLen(b uint32) int {
	switch n := int(b >> 9); b % 512 {
	case 0:
		return n % 600_000
	case 1, 2, 3, 4, 5, 6, 7, 8:
		return n % 60_000
	default:
		return n % 300
	}
}

func modelBytes(b uint32) string {
	return string(bytes.Repeat(binary.LittleEndian.AppendUint32(nil, b), modelLen(b)/4+1)[:modelLen(b)])
}

func TestModel(t *testing.T) {
	oneGoroutine(t)
	const steps = 40_000
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("to repeat it: -model.seed %d", seed)
	run := func(name string, cfg Config) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, cfg)
			r := rand.New(rand.NewPCG(seed, uint64(len(name))))
			for range steps {
				m.step(byte(r.Uint32()), r.Uint32(), r.Uint32())
			}
			m.finish()
			n := m.evicted + m.e.Stats().Evicted
			if evicts := cfg.Policy != NoEviction; evicts != (n > 0) {
				t.Errorf("%d keys were evicted", n)
			}
		})
	}
	run("tiny, all keys", Config{MaxBytes: 3 << 20, Shards: 4, windowReach: 256 << 20})
	run("tiny, one shard", Config{MaxBytes: 2 << 20, Shards: 1})
	run("tiny, volatile", Config{MaxBytes: 3 << 20, Shards: 4, Policy: VolatileTTL})
	run("full, no eviction", Config{MaxBytes: 3 << 20, Shards: 4, Policy: NoEviction})
	run("roomy, no eviction", Config{MaxBytes: 1 << 30, Shards: 8, Policy: NoEviction})
}

func FuzzModel(f *testing.F) {
	f.Add(false, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 150, 1, 2, 3, 4, 5, 6, 7, 8, 255, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, exact bool, ops []byte) {
		ops = ops[:min(len(ops), 9*3000)]
		cfg := Config{MaxBytes: 1 << 20, Shards: 2}
		if exact {
			cfg.Policy = NoEviction
		}
		m := newModel(t, cfg)
		for ; len(ops) >= 9; ops = ops[9:] {
			m.step(ops[0], binary.LittleEndian.Uint32(ops[1:]), binary.LittleEndian.Uint32(ops[5:]))
		}
		m.finish()
	})
}
