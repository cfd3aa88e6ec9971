package shape

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

func makeOrdered(tb testing.TB, t engine.Txn, key string) *Ordered {
	tb.Helper()
	return &Ordered{V: makeValue(tb, t, key), Leaves: testLeaves, Nodes: testNodes}
}

// orderedModel runs the same operations on an Ordered and on a sorted slice.
type orderedModel struct {
	tb      testing.TB
	o       *Ordered
	want    []orderedEntry
	fingers [3]Finger
	height  int // the most it was
	full    int // changes without memory
}

type orderedEntry struct{ key, value string }

func (m *orderedModel) place(key string) (at int, there bool) {
	return slices.BinarySearchFunc(m.want, key, func(x orderedEntry, key string) int {
		return bytes.Compare([]byte(x.key), []byte(key))
	})
}

func (m *orderedModel) set(key, value string) {
	at, there := m.place(key)
	var added bool
	var err error
	if f := &m.fingers[len(value)%3]; len(value)%2 == 0 {
		added, err = m.o.Set([]byte(key), []byte(value))
	} else {
		var old []byte
		var found bool
		old, found, err = m.o.SwapAt(f, []byte(key), []byte(value), []byte("."))
		if added = !found; found && there && string(old) != "."+m.want[at].value {
			m.tb.Fatalf("key %q had %q, want %q", key, old, m.want[at].value)
		}
	}
	switch {
	case errors.Is(err, engine.ErrMemory):
		m.full++
		return
	case err != nil:
		m.tb.Fatal(err)
	case added == there:
		m.tb.Fatalf("key %q was there: %t; added: %t", key, there, added)
	case there:
		m.want[at].value = value
	default:
		m.want = slices.Insert(m.want, at, orderedEntry{key, value})
	}
}

func (m *orderedModel) delete(key string) {
	at, there := m.place(key)
	if len(key)%2 == 0 {
		if m.o.Delete([]byte(key)) != there {
			m.tb.Fatalf("key %q was there: %t", key, there)
		}
	} else if old, found := m.o.TakeAt(len(key)%OrderedMarks, []byte(key), nil); found != there || there && string(old) != m.want[at].value {
		m.tb.Fatalf("key %q was there: %t, had %q", key, there, old)
	}
	if there {
		m.want = slices.Delete(m.want, at, at+1)
	}
}

func (m *orderedModel) deleteRange(first, last string, leaves int) {
	from, _ := m.place(first)
	to, there := m.place(last)
	if there {
		to++
	}
	removed, done := m.o.DeleteRange([]byte(first), []byte(last), 1+leaves*100, leaves)
	if there := max(0, to-from); removed > there || done && removed < there {
		m.tb.Fatalf("%d keys from %q to %q were removed of %d, done: %t", removed, first, last, there, done)
	}
	if removed > 0 {
		m.want = slices.Delete(m.want, from, from+removed)
	}
}

func (m *orderedModel) get(key string) {
	at, there := m.place(key)
	value, found := m.o.Get([]byte(key))
	if found != there || found && string(value) != m.want[at].value {
		m.tb.Fatalf("key %q is there: %t, found: %t, %q", key, there, found, value)
	}
	if edited, found := m.o.Edit([]byte(key)); found != there || string(edited) != string(value) {
		m.tb.Fatalf("key %q is there: %t, to be edited: %t, %q", key, there, found, edited)
	}
	mark := len(key) % OrderedMarks
	if near, found := m.o.GetAt(mark, []byte(key)); found != there || string(near) != string(value) {
		m.tb.Fatalf("key %q is there: %t, found at a mark: %t, %q", key, there, found, near)
	}
	if edited, found := m.o.EditAt(mark, []byte(key)); found != there || string(edited) != string(value) {
		m.tb.Fatalf("key %q is there: %t, to be edited at a mark: %t, %q", key, there, found, edited)
	}
}

// walk compares what is behind a key, or in front of it.
func (m *orderedModel) walk(o *Ordered, want []orderedEntry, key string, n int, back bool) {
	at, there := slices.BinarySearchFunc(want, key, func(x orderedEntry, key string) int {
		return bytes.Compare([]byte(x.key), []byte(key))
	})
	c := o.Seek([]byte(key))
	if back {
		if c = o.SeekBack([]byte(key)); !there {
			at--
		}
	}
	for range n {
		if inside := at >= 0 && at < len(want); inside != c.Valid() {
			m.tb.Fatalf("walk from %q: entry %d of %d, valid: %t", key, at, len(want), c.Valid())
		} else if !inside {
			return
		}
		x := want[at]
		if got := string(c.AppendKey(nil)); got != x.key || string(c.Value()) != x.value {
			m.tb.Fatalf("walk from %q: entry %d is %q, %q; want %+v", key, at, got, c.Value(), x)
		}
		half := []byte(x.key)[:len(x.key)/2]
		if !c.HasPrefix(half) || !c.HasPrefix([]byte(x.key)) || c.HasPrefix(append([]byte(x.key), 0)) {
			m.tb.Fatalf("%q has not its own beginnings", x.key)
		}
		if back {
			c.Prev()
			at--
		} else {
			c.Next()
			at++
		}
	}
}

// orderedKey makes keys of several kinds: short ones, counters behind a few prefixes, long ones that
// differ late or early.
func orderedKey(a, b uint32) string {
	switch a % 8 {
	case 0:
		s := modelString(b)
		return string(s[:min(len(s), MaxOrderedKey)])
	case 1:
		return fmt.Sprintf("%0*d", 1+int(b>>20%300), b%2000)
	case 2:
		return string(bytes.Repeat([]byte{byte(b)}, 1+int(b>>8%590)))
	case 3:
		return ""
	}
	return string(binary.BigEndian.AppendUint32([]byte{'a', byte(a >> 8 % 5), 0, 0, 0, 0}, b%4000))
}

func orderedValue(b uint32) string {
	if b%16 == 0 {
		return string(bytes.Repeat([]byte{'v'}, int(b>>4%300)))
	}
	return string(bytes.Repeat([]byte{'v'}, int(b>>4%12)))
}

func (m *orderedModel) step(op byte, a, b uint32) {
	key := orderedKey(a, b)
	if len(m.want) > 0 && op%2 == 0 {
		key = m.want[int(b>>3)%len(m.want)].key
	}
	switch {
	case op < 90:
		m.set(key, orderedValue(a))
	case op < 110: // keys that ascend, in the midst of others
		for i := range 40 + a%80 {
			m.set(string(binary.BigEndian.AppendUint32([]byte{'a', byte(a % 5), 0, 0, 0, 0}, b%4000+i)), orderedValue(a))
		}
	case op < 115: // keys that descend
		for i := range 40 + a%80 {
			m.set(string(binary.BigEndian.AppendUint32([]byte{'a', byte(a % 5), 0, 0, 0, 0}, b%4000-i)), orderedValue(a))
		}
	case op < 180:
		m.delete(key)
	case op < 190:
		m.deleteRange(key, orderedKey(b, a), int(a%4))
	case op < 200:
		for range min(30, len(m.want)) {
			m.delete(m.want[min(int(b>>3)%len(m.want), len(m.want)-1)].key)
		}
	case op < 225:
		m.get(key)
	case op < 250:
		m.walk(m.o, m.want, key, int(a%300), op%4 < 2)
	case op == 250:
		m.check()
	case op == 251 && b%8 == 0:
		m.deleteRange("", string(bytes.Repeat([]byte{255}, 20)), int(b%100))
	}
	m.height = max(m.height, m.o.state().height())
}

func (m *orderedModel) check() {
	if err := m.o.Check(); err != nil {
		m.tb.Fatal(err)
	}
	m.walk(m.o, m.want, "", len(m.want)+1, false)
	m.walk(m.o, m.want, string(bytes.Repeat([]byte{255}, MaxOrderedKey)), len(m.want)+1, true)
	if m.o.Len() != len(m.want) {
		m.tb.Fatalf("%d entries are counted, want %d", m.o.Len(), len(m.want))
	}
}

func runOrdered(tb testing.TB, full bool, ops func() (op byte, a, b uint32, ok bool)) *orderedModel {
	e := openEngine(tb, 4<<20)
	if full {
		fillEngine(tb, e)
	}
	t := e.Lock(1, 1)
	defer t.Unlock()
	m := &orderedModel{tb: tb, o: makeOrdered(tb, t, "map")}
	for {
		op, a, b, ok := ops()
		if !ok {
			break
		}
		m.step(op, a, b)
	}
	m.check()
	for len(m.want) > 0 {
		m.delete(m.want[len(m.want)/3].key)
	}
	m.check()
	return m
}

func TestOrderedModel(t *testing.T) {
	for _, full := range []bool{false, true} {
		for range 2 {
			seed, steps := rand.Uint64(), 4_000
			r := rand.New(rand.NewPCG(seed, 1))
			t.Logf("seed %d", seed)
			m := runOrdered(t, full, func() (byte, uint32, uint32, bool) {
				steps--
				return byte(r.Uint32()), r.Uint32(), r.Uint32(), steps > 0
			})
			if m.height == 0 && !full {
				t.Error("the map had one leaf at most")
			}
			if full && m.full == 0 {
				t.Error("there was always memory")
			}
		}
	}
}

func FuzzOrdered(f *testing.F) {
	f.Add(false, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 150, 1, 2, 3, 4, 5, 6, 7, 8, 250, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, full bool, ops []byte) {
		ops = ops[:min(len(ops), 9*2000)]
		runOrdered(t, full, func() (op byte, a, b uint32, ok bool) {
			if len(ops) < 9 {
				return 0, 0, 0, false
			}
			op, a, b = ops[0], binary.LittleEndian.Uint32(ops[1:]), binary.LittleEndian.Uint32(ops[5:])
			ops = ops[9:]
			return op, a, b, true
		})
	})
}

// A map of several levels grows in random order, and is emptied from its middle.
func TestOrderedOfManyLevels(t *testing.T) {
	e := openEngine(t, 256<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	o, n := makeOrdered(t, x, "map"), 60_000
	key := func(i int) []byte {
		return binary.BigEndian.AppendUint64(bytes.Repeat([]byte{byte(i)}, 100+i%300), uint64(i))
	}
	r := rand.New(rand.NewPCG(1, 2))
	order := r.Perm(n)
	for _, i := range order {
		if added, err := o.Set(key(i), []byte("value")); err != nil || !added {
			t.Fatal(added, err)
		}
	}
	if height := o.state().height(); height < 3 {
		t.Errorf("a map of %d entries has height %d", n, height)
	}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	for at, i := range r.Perm(n) {
		if !o.Delete(key(i)) {
			t.Fatalf("key %d is not there", i)
		}
		if at%10_000 == 0 {
			if err := o.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := o.Check(); err != nil {
		t.Error(err)
	}
}

// Keys that ascend at several places leave full leaves.
func TestOrderedIsFullWhereKeysAscend(t *testing.T) {
	e := openEngine(t, 256<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	o, bytes := makeOrdered(t, x, "map"), 0
	const n, places = 100_000, 8
	for i := range n {
		key := binary.BigEndian.AppendUint64([]byte{'p', byte(i % places)}, uint64(i))
		if _, err := o.Set(key, []byte("value")); err != nil {
			t.Fatal(err)
		}
		bytes += 2 + len("value") + 1 + pageSlot // two bytes of the key differ in a leaf
	}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	if got := float64(o.V.Bytes()) / float64(bytes); got > 1.12 {
		t.Errorf("%d bytes for %d bytes of entries: %.2f", o.V.Bytes(), bytes, got)
	}
}

// A pinned map is read as it was.
func TestOrderedPinned(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	o, m := makeOrdered(t, x, "map"), &orderedModel{tb: t}
	m.o = o
	for i := range uint32(20_000) {
		m.set(orderedKey(4, i*7919), orderedValue(i))
	}
	pin, err := o.V.PinValue()
	if err != nil {
		t.Fatal(err)
	}
	was := slices.Clone(m.want)
	for i := range uint32(3000) {
		m.set(orderedKey(i, i*104729), orderedValue(i+5))
		m.delete(m.want[int(i*31)%len(m.want)].key)
	}
	m.check()
	x.Unlock()
	if !pin.Lock() {
		t.Fatal("the pin has broken")
	}
	old := Ordered{Pin: pin, Leaves: testLeaves, Nodes: testNodes}
	m.walk(&old, was, "", len(was)+1, false)
	for i := range 300 {
		x := was[i*i%len(was)]
		if value, found := old.GetAt(i%OrderedMarks, []byte(x.key)); !found || string(value) != x.value {
			t.Fatalf("key %q was %q, found at a mark of the pin: %t, %q", x.key, x.value, found, value)
		}
	}
	m.walk(&old, was, was[len(was)/2].key, len(was), true)
	pin.Unlock()
	pin.Release()
}

func TestOrderedAllocatesNothing(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	o := makeOrdered(t, x, "map")
	for i := range uint32(5000) {
		if _, err := o.Set(binary.BigEndian.AppendUint32([]byte("key"), i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	key, odd, sum, n := []byte("key\x00\x00\x07\x07"), []byte("key\x00\x00\x07\x07."), 0, uint32(10_000)
	buf, value := make([]byte, 0, MaxOrderedKey), make([]byte, 0, 100)
	for name, command := range map[string]func(){
		"Get": func() { v, _ := o.Get(key); sum += len(v) },
		"Set": func() { _, _ = o.Set(key, key); _, _ = o.Set(key, key[:3]) },
		"Set and Delete": func() {
			_, _ = o.Set(odd, key)
			o.Delete(odd)
		},
		"Set of ascending keys": func() {
			for range 500 {
				n++
				buf = binary.BigEndian.AppendUint32(append(buf[:0], "key"...), n)
				_, _ = o.Set(buf, key)
			}
			o.DeleteRange([]byte("key\x00\x00\x27\x10"), []byte("key\xff"), 1000, 1000)
		},
		"GetAt, and TakeAt of ascending keys": func() {
			for i := range uint32(300) {
				buf = binary.BigEndian.AppendUint32(append(buf[:0], "kez"...), i)
				_, _ = o.Set(buf, key)
			}
			for i := range uint32(300) {
				buf = binary.BigEndian.AppendUint32(append(buf[:0], "kez"...), i)
				v, _ := o.GetAt(0, key)
				sum += len(v)
				_, _ = o.TakeAt(1, buf, value[:0])
			}
		},
		"walk": func() {
			c := o.Seek(key)
			for range 300 {
				buf = c.AppendKey(buf[:0])
				sum += len(buf) + len(c.Value())
				c.Next()
			}
		},
	} {
		if got := testing.AllocsPerRun(100, command); got != 0 {
			t.Errorf("%s allocates %.1f times", name, got)
		}
	}
}

// Keys that are taken in their order are found where a mark is, but for the few that leave a leaf with little;
// and no mark leads to a leaf that has got other keys.
func TestOrderedMarks(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	o := makeOrdered(t, x, "map")
	const n = 20_000
	key := func(i int) []byte { return binary.BigEndian.AppendUint32([]byte("key"), uint32(i)) }
	set := func(i int) {
		if added, err := o.Set(key(i), []byte("value")); err != nil || !added {
			t.Fatalf("key %d is new: %t, %v", i, added, err)
		}
	}
	take := func(i int) {
		if value, found := o.TakeAt(1, key(i), []byte{}); !found || string(value) != "value" {
			t.Fatalf("key %d is there: %t, %q", i, found, value)
		}
	}
	for i := range n {
		set(i)
	}
	marked := 0
	for i := range n / 2 {
		if _, e, found, ok := o.markedAt(o.state(), 1, key(i)); ok && found && e == 0 {
			marked++
		}
		take(i)
	}
	if marked < n/2*9/10 {
		t.Errorf("a mark led to %d keys of %d", marked, n/2)
	}
	for i := n - 1; i >= n/2; i-- { // leaves go from the other end, while the first one is marked
		if _, found := o.GetAt(1, key(n/2)); !found {
			t.Fatalf("the first key is not there when key %d is", i)
		}
		if i%2 == 0 {
			set(i - n/2) // and come in front
			take(i - n/2)
		}
		if i > n/2 && !o.Delete(key(i)) {
			t.Fatalf("key %d is not there", i)
		}
		if i%100 == 0 {
			if err := o.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if o.Len() != 1 {
		t.Errorf("%d keys are left, want 1", o.Len())
	}
}
