package streams

import (
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// sample is a big stream's snapshot, in deltas, and a small stream's record.
func sample(tb testing.TB, seed uint64) (deltas [][]byte, record []byte) {
	m := newRig(tb, seed)
	m.most, m.few = 200, true
	m.long = 1000
	for record == nil || len(deltas) == 0 {
		m.change()
		m.with(m.owner, func(s *stream) {
			switch {
			case !s.found:
			case !s.isBig:
				record = s.small.append(nil)
			case s.len() > 20 && s.groups() > 1 && record != nil:
				for place, done := (engine.Place{}), false; !done; {
					var d []byte
					d, place, done = dump(s.big.v, place, nil, 1000)
					deltas = append(deltas, d)
				}
			case record == nil || s.len() > 190:
				s.txn.Delete(testKey)
				m.want = nil
			}
		})
	}
	return deltas, record
}

// newBig gives a key an empty big stream.
func newBig(tb testing.TB, t engine.Txn) engine.Parts {
	tb.Helper()
	t.Delete(testKey)
	if err := t.Reserve(engine.Room{Roots: []int{len(testKey) + ownSize}}); err != nil {
		tb.Fatal(err)
	}
	v, err := t.NewParts(testKey, engine.TypeStream, ownSize, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// readAll reads everything of a stream, as commands do.
func readAll(tb testing.TB, v *view) {
	n := 0
	v.each(minID, func(id ID, e entry) bool {
		e.each(func(_ int, s shape.Item) bool {
			n += s.Len()
			return true
		})
		if _, found := v.entry(id); !found {
			tb.Fatalf("entry %v is not found", id)
		}
		return n < 1<<20
	})
	v.eachBack(maxID, func(ID, entry) bool { return true })
	v.eachGroup(nil, func(g *group) bool {
		v.eachConsumer(g, nil, func(c *consumer) bool {
			v.eachPending(g, c, minID, func(pending) bool { return true })
			return true
		})
		v.eachPending(g, nil, minID, func(pending) bool { return true })
		return true
	})
}

// applyMalformed applies a delta of any content. Whatever it says, the stream fits together.
func applyMalformed(tb testing.TB, e *engine.Engine, deltas ...[]byte) {
	t := e.Lock(testPartition, 1)
	defer t.Unlock()
	v := newBig(tb, t)
	for _, d := range deltas {
		if err := apply(v, d); err != nil {
			t.Delete(testKey)
			return
		}
		x := viewParts(v)
		if err := x.big.check(); err != nil {
			tb.Fatal(err)
		}
		readAll(tb, &x)
		for range 3 {
			expire(v)
		}
		var w word
		for rest, err := nextWord(&w, d); err == nil && len(rest) > 0; rest, err = nextWord(&w, rest) {
			_, _ = within(v, d, (&place{stage: int(w.op) % 5, id: w.id, group: w.group}).place(), nil)
		}
	}
}

func FuzzApply(f *testing.F) {
	deltas, _ := sample(f, 7)
	for _, d := range deltas {
		f.Add(d, d)
	}
	f.Add(appendDestroy(appendGroup(nil, &group{name: []byte("g"), number: 3}), 3), appendSweep(nil, 3, keyGroup, 1))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		e := openTestEngine(t, 8<<20, engine.AllKeys)
		applyMalformed(t, e, first, second)
	})
}

// TestMalformedDeltas: deltas with errors anywhere do no harm.
func TestMalformedDeltas(t *testing.T) {
	deltas, _ := sample(t, rand.Uint64())
	e := openTestEngine(t, 64<<20, engine.AllKeys)
	applyMalformed(t, e, deltas...)
	r, n := rand.New(rand.NewPCG(rand.Uint64(), 1)), 3000
	if testing.Short() {
		n = 500
	}
	for range n {
		var all [][]byte
		for _, d := range deltas {
			d = append([]byte{}, d...)
			for range r.IntN(3) {
				if len(d) > 0 {
					d[r.IntN(len(d))] ^= byte(1 << r.IntN(8))
				}
			}
			if r.IntN(10) == 0 {
				d = d[:r.IntN(len(d)+1)]
			}
			all = append(all, d)
		}
		applyMalformed(t, e, all...)
	}
}

func checkMalformed(tb testing.TB, record []byte) {
	if checkRecord(record) != nil {
		return
	}
	v := viewSmall(record)
	readAll(tb, &v)
	if again := v.small.append(nil); len(again) > len(record) {
		tb.Fatalf("a record of %d bytes has %d when it is stored", len(record), len(again))
	}
}

func FuzzCheckRecord(f *testing.F) {
	_, record := sample(f, 7)
	f.Add(record)
	f.Fuzz(func(t *testing.T, record []byte) { checkMalformed(t, record) })
}

// TestMalformedRecords: records with errors anywhere are refused, or do no harm.
func TestMalformedRecords(t *testing.T) {
	_, record := sample(t, rand.Uint64())
	if err := checkRecord(record); err != nil {
		t.Fatal(err)
	}
	r, refused := rand.New(rand.NewPCG(rand.Uint64(), 1)), 0
	for range 20_000 {
		b := append([]byte{}, record...)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
		}
		b = b[:len(b)-max(0, r.IntN(20)-18)]
		if checkRecord(b) != nil {
			refused++
		}
		checkMalformed(t, b)
	}
	if refused == 0 {
		t.Error("no record was refused")
	}
}

// A small stream of any length is taken for one by another node.
func TestStreamsCarrySmallStreams(t *testing.T) {
	e, longest := openTestEngine(t, 64<<20, engine.AllKeys), 0
	x := e.Lock(testPartition, 1)
	defer x.Unlock()
	for size := range 300 {
		x.Delete(testKey)
		for i := uint64(1); ; i++ {
			item, found := x.Peek(testKey)
			s := streamOf(nil, x, testKey, item, found)
			if s.isBig {
				break
			}
			if found {
				longest = max(longest, len(item.Value()))
				if err := checkRecord(item.Value()); err != nil || len(item.Value()) > streamType.MaxEffect {
					t.Fatalf("a record of %d bytes: %v", len(item.Value()), err)
				}
			}
			if err := s.add(ID{i << 40, i << 50}, [][]byte{[]byte("name"), pattern(1, size)}); err != nil {
				t.Fatal(err)
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if longest < shape.MaxPacked-40 {
		t.Errorf("the longest record had %d bytes", longest)
	}
}
