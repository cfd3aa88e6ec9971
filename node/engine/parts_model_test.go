package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// bagModel runs the same operations on bags in an engine and on maps, beside plain strings that
// compete with them for memory.
type bagModel struct {
	tb     testing.TB
	e      *Engine
	bags   map[modelKey]*modelBag
	now    int64
	limit  int64
	exact  bool // nothing may be missing
	copies map[uint16]CopyKind
	missed int // bags that were evicted
	read   int // pinned bags that were read to the end
	pins   []*bagPin
}

// bagPin is a pinned bag, read number by number.
type bagPin struct {
	pin           *ValuePin
	want, got     map[uint32]string
	own           string
	plane, number int
}

// pin pins a bag.
func (m *bagModel) pin(k modelKey) {
	with(m.e, k.p, m.now, func(t Txn) {
		v, ok := m.find(t, k)
		if !ok {
			return
		}
		if pin, err := v.PinValue(); err == nil {
			m.pins = append(m.pins, &bagPin{pin: pin, want: maps.Clone(m.bags[k].elements), got: map[uint32]string{}, own: string(v.Own())})
		}
	})
}

// readPin reads some parts of a pinned bag, and all of it is what the bag had.
func (m *bagModel) readPin(i, parts int) {
	x := m.pins[i]
	if !x.pin.Lock() {
		m.pins = slices.Delete(m.pins, i, i+1)
		return
	}
	for ; parts > 0 && x.plane < Planes; parts-- {
		if x.number == x.pin.Len(x.plane) {
			x.plane, x.number = x.plane+1, 0
			continue
		}
		if part := x.pin.Part(x.plane, x.number); part != nil {
			x.got[binary.LittleEndian.Uint32(part)] = string(bagBytes(part))
		}
		x.pin.Done(x.plane, x.number)
		x.number++
	}
	x.pin.Unlock()
	if x.plane < Planes {
		return
	}
	if !maps.Equal(x.want, x.got) || string(x.pin.Own()) != x.own {
		m.tb.Fatalf("a pinned bag has %d elements, had %d when it was pinned, or others", len(x.got), len(x.want))
	}
	x.pin.Release()
	m.read++
	m.pins = slices.Delete(m.pins, i, i+1)
}

func (m *bagModel) stepPins(k modelKey, b uint32) {
	switch n := len(m.pins); {
	case n < 5 && b%4 == 0:
		m.pin(k)
	case n > 0 && b%64 == 1:
		m.pins[int(b>>8)%n].pin.Release()
		m.readPin(int(b>>8)%n, 1)
	case n > 0:
		m.readPin(int(b>>8)%n, 1+int(b>>12)%60)
	}
}

type modelBag struct {
	incarnation uint32
	expireAt    int64
	elements    map[uint32]string
	due         uint32 // the element that expires
	dueAt       int64
}

func newBagModel(tb testing.TB, cfg Config) *bagModel {
	cfg.Forms = bags()
	return &bagModel{tb: tb, e: open(tb, cfg), bags: map[modelKey]*modelBag{}, copies: map[uint16]CopyKind{}, now: 1_000_000, limit: cfg.MaxBytes, exact: cfg.Policy == NoEviction}
}

// expect is what there should be under k, if it is found.
func (m *bagModel) expect(k modelKey) *modelBag {
	b := m.bags[k]
	if b != nil && expired(b.expireAt, m.now) && m.copies[PartitionOf(k.p)] == NoCopy {
		delete(m.bags, k)
		return nil
	}
	return b
}

// find compares the bag under k with what it should be.
func (m *bagModel) find(t Txn, k modelKey) (Parts, bool) {
	v, ok := bag(t, k.key)
	b := m.expect(k)
	if !ok {
		if b != nil && m.exact && !expired(b.dueAt, m.now) {
			m.tb.Fatalf("bag %q is gone", k.key)
		}
		if b != nil && !expired(b.dueAt, m.now) {
			m.missed++
		}
		delete(m.bags, k)
		return v, false
	}
	if b == nil || v.Incarnation() != b.incarnation || string(v.Key()) != k.key || v.Type() != bagType {
		m.tb.Fatalf("bag %q of incarnation %d, want %+v", v.Key(), v.Incarnation(), b)
	}
	got := bagContent(m.tb, v)
	if _, there := got[b.due]; !there && expired(b.dueAt, m.now) {
		delete(b.elements, b.due)
	}
	if !maps.Equal(got, b.elements) {
		for id, want := range b.elements {
			if value, there := got[id]; value != want {
				m.tb.Errorf("element %d: there %t, %d bytes, want %d", id, there, len(value), len(want))
			}
		}
		m.tb.Fatalf("bag %q has %d elements, want %d, or others; %d expires at %d, now %d", k.key, len(got), len(b.elements), b.due, b.dueAt, m.now)
	}
	return v, true
}

// refused checks that memory may be refused to a partition.
func (m *bagModel) refused(err error, p uint16, what string) {
	if !errors.Is(err, ErrMemory) || m.e.Policy() == AllKeys && m.copies[PartitionOf(p)] != SpareCopy {
		m.tb.Fatalf("%s: %v", what, err)
	}
}

// set sets an element, and makes the bag if there is none. Once memory was reserved nothing may
// fail.
func (m *bagModel) set(k modelKey, id uint32, value []byte, at int64) {
	with(m.e, k.p, m.now, func(t Txn) {
		v, ok := m.find(t, k)
		room := Room{Parts: []int{bagHead + len(value)}}
		if ok {
			room.Spared = []Parts{v}
		} else {
			room.Roots = []int{len(k.key) + bagOwn}
		}
		if err := t.Reserve(room); err != nil {
			m.refused(err, k.p, "reserve")
			return
		}
		if !ok {
			var err error
			if v, err = newBag(t, []byte(k.key), at); err != nil {
				m.tb.Fatalf("a new bag, reserved: %v", err)
			}
			m.bags[k] = &modelBag{incarnation: v.Incarnation(), expireAt: at, elements: map[uint32]string{}}
		}
		if err := bagSet(v, id, value); err != nil {
			m.tb.Fatalf("an element of %d bytes, reserved: %v", len(value), err)
		}
		m.bags[k].elements[id] = string(value)
	})
}

func (m *bagModel) remove(k modelKey, id uint32) {
	with(m.e, k.p, m.now, func(t Txn) {
		v, ok := m.find(t, k)
		if !ok {
			return
		}
		_, there := m.bags[k].elements[id]
		if bagDelete(v, id) != there {
			m.tb.Fatalf("element %d of %q: there %t", id, k.key, there)
		}
		if delete(m.bags[k].elements, id); len(m.bags[k].elements) == 0 {
			delete(m.bags, k)
		}
	})
}

// drop forgets what the model has of a partition.
func (m *bagModel) drop(p uint16) {
	maps.DeleteFunc(m.bags, func(k modelKey, _ *modelBag) bool { return PartitionOf(k.p) == p })
}

func (m *bagModel) step(op byte, a, b uint32) {
	k := modelKey{Section(uint16(a%3), uint8(a/3%2)*9), fmt.Sprint("bag:", a/8%6)}
	key := []byte(k.key)
	id := a >> 8 % 200
	switch {
	case op < 130:
		m.set(k, id, bagValue(b), m.someExpiry(b))
	case op < 160:
		m.remove(k, id)
	case op < 175:
		with(m.e, k.p, m.now, func(t Txn) { m.find(t, k) })
	case op < 180:
		with(m.e, k.p, m.now, func(t Txn) { t.Delete(key) })
		delete(m.bags, k)
	case op < 184:
		at := m.someExpiry(b)
		with(m.e, k.p, m.now, func(t Txn) {
			if _, ok := m.find(t, k); ok && t.SetExpire(key, at) {
				m.bags[k].expireAt = at
			}
		})
	case op < 187:
		with(m.e, k.p, m.now, func(t Txn) {
			if v, ok := m.find(t, k); ok {
				m.bags[k].due, m.bags[k].dueAt = id, m.now+int64(b%2000)
				bagExpire(v, id, m.bags[k].dueAt)
			}
		})
	case op < 190:
		with(m.e, k.p, m.now, func(t Txn) {
			if t.Set(key, []byte("a string"), TypeString, 0) == nil {
				delete(m.bags, k)
			}
			t.Delete(key)
		})
		delete(m.bags, k)
	case op < 222:
		with(m.e, k.p, m.now, func(t Txn) {
			name := fmt.Sprint("string:", a%3000)
			if err := t.Set([]byte(name), modelBytesOf(b, int(b>>8%700)), TypeString, m.someExpiry(b)); err != nil {
				m.refused(err, k.p, "a string")
			}
		})
	case op < 232:
		m.stepPins(k, b)
	case op < 240:
		m.now += int64(b % 500)
	case op < 246:
		m.e.Sweep(m.now, int(b%100))
	default:
		m.stepMuch(k.p, op, b)
	}
	if used, limit := m.e.Used(), m.e.MaxBytes(); used > limit && m.e.Policy() == AllKeys {
		m.tb.Fatalf("%d bytes are used of %d", used, limit)
	}
}

// stepMuch does one operation of those that concern many keys.
func (m *bagModel) stepMuch(p uint16, op byte, b uint32) {
	switch op {
	case 246:
		if b%2 == 0 {
			m.e.Drop(PartitionOf(p))
			m.drop(PartitionOf(p))
			break
		}
		m.e.Clear(p)
		maps.DeleteFunc(m.bags, func(k modelKey, _ *modelBag) bool { return k.p == p })
	case 247:
		m.e.Forget(PartitionOf(p))
		m.drop(PartitionOf(p))
	case 248:
		if b%8 == 0 {
			m.e.Reset(uint64(b))
			clear(m.bags)
			if st := m.e.Stats(); st.Used != st.Fixed+st.Feeds || st.Parts != 0 {
				m.tb.Fatalf("after a reset: %+v", st)
			}
		}
	case 249, 250:
		if !m.exact {
			for k := range maps.Clone(m.bags) { // what has expired is gone before nothing expires any more
				if PartitionOf(k.p) == PartitionOf(p) {
					with(m.e, k.p, m.now, func(t Txn) { m.find(t, k) })
				}
			}
			p := PartitionOf(p)
			m.copies[p] = CopyKind(b % 4 % 3)
			m.e.SetCopy(p, m.copies[p])
		}
	case 251:
		if !m.exact {
			if err := m.e.SetMaxBytes(m.limit / 256 * int64(160+b%96)); err != nil {
				m.tb.Fatal(err)
			}
		}
	case 252:
		m.e.checkSums(m.tb)
	}
}

func (m *bagModel) someExpiry(b uint32) int64 {
	if b%5 != 0 {
		return 0
	}
	return m.now + 1 + int64(b>>8%5000)
}

// bagValue is mostly small, sometimes too large for a cell.
func bagValue(b uint32) []byte {
	switch n := int(b >> 8); b % 64 {
	case 0:
		return modelBytesOf(b, n%60_000)
	case 1, 2, 3:
		return modelBytesOf(b, n%3_000)
	default:
		return modelBytesOf(b, n%300)
	}
}

func modelBytesOf(b uint32, n int) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint32(nil, b), n/4+1)[:n]
}

func (m *bagModel) finish() {
	m.e.checkSums(m.tb)
	for len(m.pins) > 0 {
		m.readPin(0, 1000)
	}
	if n := m.e.pinnedParts.Load(); n != 0 || m.e.Outside() != 0 {
		m.tb.Errorf("%d bytes are pinned without a pin, %d charged", n, m.e.Outside())
	}
	for k := range m.bags {
		with(m.e, k.p, m.now, func(t Txn) { m.find(t, k) })
	}
	m.e.checkSums(m.tb)
}

func TestPartsModel(t *testing.T) {
	oneGoroutine(t)
	const steps = 20_000
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("to repeat it: -model.seed %d", seed)
	run := func(name string, cfg Config, evicts bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newBagModel(t, cfg)
			r := rand.New(rand.NewPCG(seed, uint64(len(name))))
			for range steps {
				m.step(byte(r.Uint32()), r.Uint32(), r.Uint32())
			}
			m.finish()
			t.Logf("%d pinned bags were read", m.read)
			if m.read == 0 {
				t.Error("no pinned bag was read to its end")
			}
			if evicts != (m.missed > 0) {
				t.Errorf("%d bags were evicted", m.missed)
			}
		})
	}
	run("tiny", Config{MaxBytes: 3 << 20, Shards: 2, windowReach: 512 << 20}, true)
	run("tiny, one shard", Config{MaxBytes: 2 << 20, Shards: 1}, true)
	run("full, no eviction", Config{MaxBytes: 2 << 20, Shards: 2, Policy: NoEviction}, false)
	run("roomy", Config{MaxBytes: 256 << 20, Shards: 4, windowReach: 256 << 20}, false)
}

func FuzzPartsModel(f *testing.F) {
	f.Add(false, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 150, 1, 2, 3, 4, 5, 6, 7, 8, 255, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, exact bool, ops []byte) {
		ops = ops[:min(len(ops), 9*3000)]
		cfg := Config{MaxBytes: 1 << 20, Shards: 2}
		if exact {
			cfg.Policy = NoEviction
		}
		m := newBagModel(t, cfg)
		for ; len(ops) >= 9; ops = ops[9:] {
			m.step(ops[0], binary.LittleEndian.Uint32(ops[1:]), binary.LittleEndian.Uint32(ops[5:]))
		}
		m.finish()
	})
}
