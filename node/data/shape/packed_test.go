package shape

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

var packedKinds = []*Kind{&PackedHash, &PackedSet, &PackedZSet, &PackedList}

// packedModel runs the same operations on a packed value and on a slice.
type packedModel struct {
	tb      testing.TB
	kind    *Kind
	p       Pack
	value   []byte // the record's
	want    []packedEntry
	refused int
}

type packedEntry struct {
	rank          uint64
	first, second string
	expireAt      int64
}

func (m *packedModel) find(s []byte) int {
	return slices.IndexFunc(m.want, func(e packedEntry) bool { return e.first == string(s) })
}

// need is about how long the value is at least.
func (m *packedModel) step(op byte, a, b uint32) {
	first, second, now := modelString(a), modelString(b), int64(1000)
	m.p.Open(m.kind, m.value, now)
	entry, refused := 0, false
	if len(m.want) > 0 {
		entry = int(b>>7) % len(m.want)
	}
	switch {
	case op < 120:
		refused = !m.insert(first, second, uint64(b%5), int(b>>9))
	case len(m.want) == 0:
	case op < 150:
		m.p.Delete(entry)
		m.want = slices.Delete(m.want, entry, entry+1)
	case op < 190 && m.kind.Items > 1:
		if refused = !m.p.Replace(entry, 1, second); !refused {
			m.want[entry].second = string(second)
		}
	case op < 190 && !m.kind.Keyed:
		if refused = !m.p.Replace(entry, 0, second); !refused {
			m.want[entry].first = string(second)
		}
	case op < 230 && m.kind.Timed:
		at := int64(0)
		if b%3 != 0 {
			at = now + 1 + int64(b)
		}
		if refused = !m.p.SetExpireAt(entry, at); !refused {
			m.want[entry].expireAt = at
		}
	}
	if refused {
		m.refused++
		return
	}
	m.value = slices.Clone(m.p.Bytes())
	if len(m.want) == 0 {
		m.value = nil
		return
	}
	m.compare()
}

func (m *packedModel) insert(first, second []byte, rank uint64, at int) bool {
	if m.kind.Keyed && m.find(first) >= 0 {
		return true
	}
	e := packedEntry{first: string(first)}
	if m.kind.Items > 1 {
		e.second = string(second)
	}
	at %= len(m.want) + 1
	if m.kind.Ranked {
		e.rank = rank
		at = 0
		for at < len(m.want) && (m.want[at].rank < rank || m.want[at].rank == rank && m.want[at].first < e.first) {
			at++
		}
	}
	if !m.p.Insert(at, rank, first, second) {
		return false
	}
	m.want = slices.Insert(m.want, at, e)
	return true
}

func (m *packedModel) compare() {
	if err := CheckPacked(m.kind, m.value); err != nil {
		m.tb.Fatal(err)
	}
	p := ReadPacked(m.kind, m.value)
	var keys [][]byte
	for _, e := range m.want {
		keys = append(keys, []byte(e.first))
	}
	keys = append(keys, []byte("not there"))
	at := make([]int, len(keys))
	p.Find(keys, at)
	for i, e := range m.want {
		if at[i] != i && m.kind.Keyed || at[i] < 0 {
			m.tb.Fatalf("%q is found at %d, is at %d", e.first, at[i], i)
		}
		if m.kind.Ranked && p.Rank(i) != e.rank {
			m.tb.Fatalf("rank %d, want %d", p.Rank(i), e.rank)
		}
		if got := string(p.Item(i, 0).Append(nil)); got != e.first || p.ExpireAt(i) != e.expireAt {
			m.tb.Fatalf("entry %d: %q until %d, want %q until %d", i, got, p.ExpireAt(i), e.first, e.expireAt)
		}
	}
	if at[len(keys)-1] != -1 || p.Len() != len(m.want) {
		m.tb.Fatalf("%d entries, want %d", p.Len(), len(m.want))
	}
	from := len(m.want) / 3
	i := from
	p.Each(from, func(entry int, first, second Item, expireAt int64) bool {
		e := m.want[i]
		if entry != i || string(first.Append(nil)) != e.first || m.kind.Items > 1 && string(second.Append(nil)) != e.second || expireAt != e.expireAt {
			m.tb.Fatalf("entry %d of %d: %q, %q until %d", entry, i, first.Append(nil), second.Append(nil), expireAt)
		}
		i++
		return true
	})
	if i != len(m.want) {
		m.tb.Fatalf("%d of %d entries", i-from, len(m.want)-from)
	}
}

// TestPackedOfMoreBytes changes a list that a build with another limit has packed.
func TestPackedOfMoreBytes(t *testing.T) {
	wide := PackedList
	wide.UpTo = MaxPackedList
	var p Pack
	p.Open(&wide, nil, 0)
	n := 0
	for p.Insert(n, 0, []byte("an element"), nil) {
		n++
	}
	value := bytes.Clone(p.Bytes())
	if err := CheckPacked(&PackedList, value); err != nil || len(value) < MaxPackedList-20 {
		t.Fatalf("%d bytes: %v", len(value), err)
	}
	p.Open(&PackedList, value, 0)
	if p.Insert(n, 0, []byte("an element"), nil) {
		t.Error("a list beyond the limit grows in its record")
	}
	p.DeleteSome(1, n-2)
	if !p.Insert(1, 0, []byte("another"), nil) || p.Len() != 3 {
		t.Errorf("%d elements after nearly all were removed", p.Len())
	}
}

func TestPackedModel(t *testing.T) {
	for _, kind := range packedKinds {
		m := &packedModel{tb: t, kind: kind}
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		for range 1500 {
			m.step(byte(r.Uint32()), r.Uint32(), r.Uint32())
		}
		if m.refused == 0 {
			t.Error("the limits were never reached")
		}
	}
}

func FuzzPacked(f *testing.F) {
	f.Add(byte(0), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 150, 1, 2, 3, 4, 5, 6, 7, 8, 200, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, kind byte, ops []byte) {
		m := &packedModel{tb: t, kind: packedKinds[kind%4]}
		for ; len(ops) >= 9; ops = ops[9:] {
			m.step(ops[0], binary.LittleEndian.Uint32(ops[1:]), binary.LittleEndian.Uint32(ops[5:]))
		}
	})
}

// Bytes of any content are refused, or are a value with which everything can be done.
func FuzzCheckPacked(f *testing.F) {
	for i, kind := range packedKinds {
		m := &packedModel{tb: f, kind: kind}
		for j := range uint32(40) {
			m.step(0, j*7, j)
			m.step(200, j*5, j*3)
		}
		f.Add(byte(i), m.value)
	}
	f.Fuzz(func(t *testing.T, i byte, value []byte) { usePacked(packedKinds[i%4], value) })
}

// usePacked does with bytes what commands do, if they are a packed value.
func usePacked(kind *Kind, value []byte) bool {
	if CheckPacked(kind, value) != nil {
		return false
	}
	p, x := ReadPacked(kind, value), Pack{}
	p.Each(0, func(entry int, first, second Item, expireAt int64) bool {
		if p.Item(entry, 0).Len() != len(first.Append(nil)) {
			panic("lengths differ")
		}
		second.Append(nil)
		x.Open(kind, value, 5)
		if kind.Items > 1 {
			x.Replace(entry, 1, []byte("another value"))
		}
		if kind.Timed {
			x.SetExpireAt(entry, expireAt+100)
			x.SetExpireAt(entry, 0)
		}
		x.Delete(entry)
		x.Insert(0, 0, []byte("a new one, that has not been there"), []byte("7"))
		if CheckPacked(kind, x.Bytes()) != nil && !kind.Ranked {
			panic("a changed value is malformed")
		}
		return true
	})
	return true
}

// Values with a byte changed, or cut off, do not panic.
func TestCheckPackedMalformed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range packedKinds {
		m := &packedModel{tb: t, kind: kind}
		for j := range uint32(30) {
			m.step(0, j*7, j)
			m.step(200, j*5, j*3)
		}
		accepted := 0
		for range 1000 {
			value := bytes.Clone(m.value)
			value[r.IntN(len(value))] = byte(r.Uint32())
			if r.IntN(10) == 0 {
				value = value[:r.IntN(len(value))]
			}
			if usePacked(kind, value) {
				accepted++
			}
		}
		if accepted == 1000 {
			t.Error("nothing was refused")
		}
	}
}

func TestItems(t *testing.T) {
	for _, s := range []string{"", "0", "-0", "00", "1", "-1", "127", "128", "-128", "-129", "32767", "8388608",
		"2147483648", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "99999999999999999999", "+1", " 1", "1 ", "-", "01", "1e3"} {
		testItem(t, []byte(s))
	}
	for n := range 1000 {
		testItem(t, modelBytes(uint32(n), n))
	}
}

func testItem(t *testing.T, s []byte) {
	t.Helper()
	p := probeOf(s)
	if p.code == codeAway {
		if len(s) <= maxInline {
			t.Errorf("%d bytes are too long", len(s))
		}
		return
	}
	b := make([]byte, p.size())
	p.put(b)
	i := Item{p.code, b}
	if err := checkItem(p.code, b); err != nil || !p.is(p.code, b) || string(i.Append(nil)) != string(s) || i.Len() != len(s) {
		t.Errorf("%q is stored as code %d, %q, which says %q (%d): %v", s, p.code, b, i.Append(nil), i.Len(), err)
	}
	if p.code < codePadded && len(b) > len(s) || p.code >= codeInt && len(b) > len(s) {
		t.Errorf("%q takes %d bytes", s, len(b))
	}
}
