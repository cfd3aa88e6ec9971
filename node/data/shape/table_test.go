package shape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A value of tests: a table of fields and values, or of members.
const (
	testBlocks = 2
	testAway   = 3
	testOwn    = max(TableOwn+TreeOwn, OrderedOwn)
)

func openEngine(tb testing.TB, maxBytes int64) *engine.Engine { return openShared(tb, maxBytes, 0) }

// openShared opens an engine in which a value grows to a share of the memory.
func openShared(tb testing.TB, maxBytes, share int64) *engine.Engine {
	tb.Helper()
	form := engine.Form{
		Apply: func(engine.Parts, []byte) error { return nil },
		Dump: func(_ engine.Parts, _ engine.Place, dst []byte, _ int) ([]byte, engine.Place, bool) {
			return dst, engine.Place{}, true
		},
	}
	e, err := engine.New(engine.Config{
		MaxBytes: maxBytes, Share: share, Shards: 1, Seed: 7, Policy: engine.NoEviction,
		Forms: map[engine.Type]engine.Form{engine.TypeHash: form, engine.TypeList: form},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close() })
	return e
}

// fillEngine fills an engine with strings, and makes room for a value again: a few pages and many
// cells.
func fillEngine(tb testing.TB, e *engine.Engine) {
	tb.Helper()
	t := e.Lock(2, 1)
	defer t.Unlock()
	for i := range 1_000_000 {
		if err := t.Set(fmt.Append(nil, "string:", i), modelBytes(1, 200), engine.TypeString, 0); err != nil {
			for j := range 900 {
				t.Delete(fmt.Append(nil, "string:", i-j-1))
			}
			return
		}
	}
	tb.Fatal("the engine was to be full")
}

// makeValue makes a value with parts under a key, with room for a table's state and a tree's.
func makeValue(tb testing.TB, t engine.Txn, key string) engine.Parts {
	tb.Helper()
	if err := t.Reserve(engine.Room{Roots: []int{len(key) + testOwn}}); err != nil {
		tb.Fatal(err)
	}
	v, err := t.NewParts([]byte(key), engine.TypeHash, testOwn, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func makeTable(tb testing.TB, t engine.Txn, key string, items int) *Table {
	tb.Helper()
	return &Table{V: makeValue(tb, t, key), Blocks: testBlocks, Away: testAway, Items: items, Now: 1}
}

// tableModel runs the same operations on a table and on a map.
type tableModel struct {
	tb    testing.TB
	t     *Table
	w     Work
	want  map[string]modelElement
	scans []*modelScan
	ended int
	full  int // changes without memory
	tried int // elements that TrySet has set
}

type modelElement struct {
	value    string
	expireAt int64
}

// modelScan is a scan on its way: what was there from its beginning on must be seen.
type modelScan struct {
	cursor uint64
	stayed map[string]bool
	seen   map[string]bool
}

func (m *tableModel) set(elements [][]byte, expireAt int64) {
	if len(elements) == m.t.Items && len(m.want)%2 == 0 && m.trySet(elements[0], elements[m.t.Items-1], expireAt) {
		return
	}
	err := m.t.Reserve(&m.w, elements, expireAt != 0)
	if err != nil {
		if !errors.Is(err, engine.ErrMemory) {
			m.tb.Fatal(err)
		}
		m.full++
		return
	}
	for i := 0; i < len(elements); i += m.t.Items {
		key, value := elements[i], []byte(nil)
		if m.t.Items > 1 {
			value = elements[i+1]
		}
		added, err := m.t.Set(key, value, expireAt)
		if err != nil {
			m.tb.Fatalf("set of %d and %d bytes, reserved: %v", len(key), len(value), err)
		}
		m.wasSet(key, value, expireAt, added)
	}
}

// trySet sets an element if that takes no memory. The last item of an element of one is its key.
func (m *tableModel) trySet(key, last []byte, expireAt int64) bool {
	value := last
	if m.t.Items == 1 {
		value = nil
	}
	before := m.t.V.Bytes()
	added, ok := m.t.TrySet(key, value, expireAt)
	if ok {
		m.wasSet(key, value, expireAt, added)
		if after := m.t.V.Bytes(); after > before {
			m.tb.Fatalf("%q took %d bytes", key, after-before)
		}
		m.tried++
	}
	return ok
}

func (m *tableModel) wasSet(key, value []byte, expireAt int64, added bool) {
	old, there := m.want[string(key)]
	if there = there && !m.t.isDue(old.expireAt); added == there {
		m.tb.Fatalf("%q: added %t, there %t", key, added, there)
	}
	m.want[string(key)] = modelElement{string(value), expireAt}
}

func (m *tableModel) delete(key []byte) {
	old, there := m.want[string(key)]
	if got := m.t.Delete(key); got != (there && !m.t.isDue(old.expireAt)) {
		m.tb.Fatalf("delete of %q: %t, there %t", key, got, there)
	}
	delete(m.want, string(key))
	m.left(string(key))
}

// left notes that an element was absent, so that scans need not see it.
func (m *tableModel) left(key string) {
	for _, s := range m.scans {
		delete(s.stayed, key)
	}
}

func (m *tableModel) get(key []byte) {
	want, there := m.want[string(key)]
	there = there && !m.t.isDue(want.expireAt)
	e, ok := m.t.Get(key)
	if ok != there || m.t.Has(key) != there {
		m.tb.Fatalf("get of %q: %t, there %t", key, ok, there)
	}
	if ok {
		m.compare(e, string(key), want)
	}
}

func (m *tableModel) compare(e Element, key string, want modelElement) {
	value := ""
	if m.t.Items > 1 {
		value = string(e.Value.Append(nil))
		if e.Value.Len() != len(value) {
			m.tb.Fatalf("a value of %d bytes has length %d", len(value), e.Value.Len())
		}
	}
	if string(e.Key.Append(nil)) != key || value != want.value || e.ExpireAt != want.expireAt {
		m.tb.Fatalf("element %q: %q until %d, want %q until %d", key, value, e.ExpireAt, want.value, want.expireAt)
	}
}

func (m *tableModel) expire() {
	soonest := int64(0)
	for cursor := uint64(0); ; {
		next, at := m.t.Expire(cursor, 7, func(e Element) {
			key := string(e.Key.Append(nil))
			if want, ok := m.want[key]; !ok || !m.t.isDue(want.expireAt) {
				m.tb.Fatalf("element %q has expired too early", key)
			}
			delete(m.want, key)
		})
		soonest = earlier(soonest, at)
		if cursor = next; cursor == 0 {
			break
		}
	}
	want := int64(0)
	for key, e := range m.want {
		if m.t.isDue(e.expireAt) {
			m.tb.Fatalf("element %q has not expired", key)
		}
		want = earlier(want, e.expireAt)
	}
	if soonest != want {
		m.tb.Fatalf("the next element is to expire at %d, want %d", soonest, want)
	}
}

func (m *tableModel) stepScan(b uint32) {
	if len(m.scans) < 4 {
		s := &modelScan{stayed: map[string]bool{}, seen: map[string]bool{}}
		for key, want := range m.want {
			if !m.t.isDue(want.expireAt) {
				s.stayed[key] = true
			}
		}
		m.scans = append(m.scans, s)
	}
	i := int(b) % len(m.scans)
	s := m.scans[i]
	left := 1 + int(b>>8)%50
	full := func(passed int) bool { left -= passed; return left <= 0 }
	weight := func(Element) int { return scanRoom >> (b % 8) }
	s.cursor = m.t.Scan(s.cursor, full, weight, func(e Element) {
		left--
		key := string(e.Key.Append(nil))
		m.compare(e, key, m.want[key])
		s.seen[key] = true
	})
	if s.cursor != 0 {
		return
	}
	for key := range s.stayed {
		if !s.seen[key] && !m.t.isDue(m.want[key].expireAt) {
			m.tb.Fatalf("a scan has missed %q", key)
		}
	}
	m.ended++
	m.scans = slices.Delete(m.scans, i, i+1)
}

func (m *tableModel) step(op byte, a, b uint32) {
	key := modelString(a)
	switch {
	case op < 110:
		expireAt := int64(0)
		if m.t.Items > 1 && b%7 == 0 {
			expireAt = m.t.Now + 1 + int64(b>>8%2000)
		}
		n := 1
		if b%16 == 0 {
			n = int(b>>8) % 60
		}
		elements := [][]byte{}
		for i := range n {
			elements = append(elements, modelString(a+uint32(i)*7))
			if m.t.Items > 1 {
				elements = append(elements, modelString(b+uint32(i)*11))
			}
		}
		m.set(elements, expireAt)
	case op < 200:
		m.delete(key)
	case op < 225:
		m.get(key)
	case op < 240:
		m.stepScan(b)
	case op < 245:
		m.t.Now += int64(b % 300)
		for key, old := range m.want {
			if m.t.isDue(old.expireAt) {
				m.left(key)
			}
		}
	case op < 248:
		m.expire()
	case op < 252:
		if e, ok := m.t.Random(func(n uint32) uint32 { b = b*1664525 + 1013904223; return b >> 3 % n }); ok {
			key := string(e.Key.Append(nil))
			m.compare(e, key, m.want[key])
		}
	case op == 252:
		// Nearly all go.
		for key := range m.want {
			if len(m.want) > 5 {
				m.delete([]byte(key))
			}
		}
	case op == 253:
		m.check()
	}
}

func (m *tableModel) check() {
	if err := m.t.Check(); err != nil {
		m.tb.Fatal(err)
	}
	got := map[string]modelElement{}
	for i := range m.t.V.Len(m.t.Blocks) {
		m.t.Each(i, func(e Element) {
			value := ""
			if m.t.Items > 1 {
				value = string(e.Value.Append(nil))
			}
			got[string(e.Key.Append(nil))] = modelElement{value, e.ExpireAt}
		})
	}
	want := maps.Clone(m.want)
	maps.DeleteFunc(want, func(_ string, e modelElement) bool { return m.t.isDue(e.expireAt) })
	if !maps.Equal(got, want) {
		m.tb.Fatalf("%d elements, want %d, or others", len(got), len(want))
	}
	if m.t.Len() != len(m.want) {
		m.tb.Fatalf("%d elements are counted, %d are there", m.t.Len(), len(m.want))
	}
}

// modelString is mostly short, sometimes a number, seldom too long for a block.
func modelString(a uint32) []byte {
	id := a % 997
	switch id % 31 {
	case 0:
		return fmt.Append(nil, int64(id)*int64(id)*int64(id)*-1)
	case 1, 2, 3:
		return fmt.Append(nil, id)
	case 4:
		return modelBytes(id, 180+int(id%40))
	case 5:
		return modelBytes(id, 900+int(id%5000))
	case 6:
		return modelBytes(id, int(id%8))
	}
	return modelBytes(id, 4+int(id%60))
}

func modelBytes(id uint32, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(id>>(8*(i&1))) ^ byte(i)
	}
	return b
}

func runTable(tb testing.TB, items int, full bool, ops func() (op byte, a, b uint32, ok bool)) *tableModel {
	e := openEngine(tb, 2<<20)
	if full {
		fillEngine(tb, e)
	}
	t := e.Lock(1, 1)
	defer t.Unlock()
	m := &tableModel{tb: tb, t: makeTable(tb, t, "table", items), want: map[string]modelElement{}}
	for {
		op, a, b, ok := ops()
		if !ok {
			break
		}
		m.step(op, a, b)
	}
	m.check()
	for key := range m.want {
		m.delete([]byte(key))
	}
	m.check()
	if n := m.t.V.Len(testBlocks); n > 1 && !full || m.t.V.Count(testAway) != 0 || m.t.Bytes() != 0 {
		tb.Errorf("an empty table has %d blocks, %d strings in parts, %d bytes", n, m.t.V.Count(testAway), m.t.Bytes())
	}
	return m
}

func TestTableModel(t *testing.T) {
	for i := range 4 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		steps := 10_000
		m := runTable(t, 1+i%2, i >= 2, func() (byte, uint32, uint32, bool) {
			steps--
			return byte(r.Uint32()), r.Uint32(), r.Uint32(), steps > 0
		})
		if m.ended == 0 {
			t.Error("no scan has come to its end")
		}
		if i >= 2 && m.full == 0 {
			t.Error("there was always memory")
		}
		if m.tried == 0 {
			t.Error("no element was set without memory")
		}
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add(true, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 150, 1, 2, 3, 4, 5, 6, 7, 8, 253, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, hash bool, ops []byte) {
		ops = ops[:min(len(ops), 9*2000)]
		items := 1
		if hash {
			items = 2
		}
		runTable(t, items, len(ops)%2 == 0, func() (op byte, a, b uint32, ok bool) {
			if len(ops) < 9 {
				return 0, 0, 0, false
			}
			op, a, b = ops[0], binary.LittleEndian.Uint32(ops[1:]), binary.LittleEndian.Uint32(ops[5:])
			ops = ops[9:]
			return op, a, b, true
		})
	})
}

// DrawSome ends soon where one block has nearly all of the elements, and finds what it is to find where none has.
func TestDrawSomeIsBounded(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	for _, crowded := range []bool{false, true} {
		table, draws := makeTable(t, x, "k", 1), 0
		s := scannedTable{table}
		for i := 0; table.Len() < 5000; i++ {
			name := fmt.Append(nil, i)
			if left := table.V.Hash(name)&(1<<9-1) == 0; !crowded || left || i%8 == 0 && table.Len() > 200 {
				s.add(t, [][]byte{name})
			}
		}
		found := table.DrawSome(new(Work), maxSome, func(n uint32) uint32 { draws++; return rand.Uint32N(n) })
		if draws > 2*maxSomeDraws || found == crowded {
			t.Errorf("crowded: %t, found: %t, %d draws", crowded, found, draws)
		}
		x.Delete([]byte("k"))
	}
}
