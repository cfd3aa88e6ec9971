package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSections(t *testing.T) {
	for p := range uint16(Partitions) {
		for d := range uint8(Databases) {
			if s := Section(p, d); PartitionOf(s) != p || DatabaseOf(s) != d || d == 0 && s != p {
				t.Fatalf("section %d is of partition %d and database %d, want %d, %d", s, PartitionOf(s), DatabaseOf(s), p, d)
			}
		}
	}
}

// TestOneKeyInAllDatabases: a key of one name is another one in each database, whatever is done to it.
func TestOneKeyInAllDatabases(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	const p = 7
	key := []byte("key")
	value := func(d uint8) string { return fmt.Sprint("value ", d) }
	for d := range uint8(Databases) {
		mustSet(t, e, Section(p, d), "key", []byte(value(d)))
		mustSet(t, e, Section(p, d), "key\x01", []byte("the database is no part of a key"))
	}
	x := e.Lock(p, 1)
	for d := range uint8(Databases) {
		y := x.Select(d)
		item, ok := y.Find(key)
		if !ok || string(item.Value()) != value(d) || string(item.Key()) != "key" || y.Section() != Section(p, d) {
			t.Errorf("database %d: %q is %q, there %t", d, item.Key(), item.Value(), ok)
		}
		if d%2 == 0 {
			if view, err := y.Resize(key, 5000); err != nil || string(bytes.TrimRight(view, "\x00")) != value(d) {
				t.Errorf("database %d: resized to %.20q, %v", d, view, err)
			}
			if !y.SetExpire(key, 1000) {
				t.Errorf("database %d: no expiry", d)
			}
		}
		if d%3 == 0 && !y.Delete(key) {
			t.Errorf("database %d: it was not there", d)
		}
	}
	x.Unlock()
	for d := range uint8(Databases) {
		item := Item{}
		ok := false
		with(e, Section(p, d), 999, func(x Txn) { item, ok = x.Find(key) })
		if ok == (d%3 == 0) || ok && d%2 == 0 && item.ExpireAt() != 1000 {
			t.Errorf("database %d: there %t, expires at %d", d, ok, item.ExpireAt())
		}
	}
	if n := e.Count(p); n != 2*Databases-6 {
		t.Errorf("%d keys", n)
	}
	e.checkSums(t)
	e.checkCounts(t)
	e.Sweep(1000, e.Pages())
	for d := range uint8(Databases) {
		want := 2
		if d%2 == 0 || d%3 == 0 {
			want = 1
		}
		if n := e.CountSection(Section(p, d)); n != want {
			t.Errorf("database %d has %d keys behind the sweep, want %d", d, n, want)
		}
	}
}

// TestLongKeysOfDatabases: a key of another database than 0 may have a byte less.
func TestLongKeysOfDatabases(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	const section = 3<<databaseShift | 9
	longest := strings.Repeat("k", MaxKeyLen-1)
	mustSet(t, e, section, longest, []byte("v"))
	if got := get(e, section, longest); string(got) != "v" {
		t.Errorf("the longest key has %q", got)
	}
	tooLong := []byte(longest + "k")
	with(e, section, 1, func(x Txn) {
		if err := x.Set(tooLong, nil, TypeString, 0); !errors.Is(err, ErrKeyTooLong) {
			t.Errorf("set: %v", err)
		}
		if _, err := x.NewParts(tooLong, bagType, bagOwn, 0); !errors.Is(err, ErrKeyTooLong) {
			t.Errorf("a value with parts: %v", err)
		}
		if _, ok := x.Find(tooLong); ok || x.Delete(tooLong) {
			t.Error("the key that is too long is there")
		}
	})
	if _, err := e.Stage(section, tooLong, 10); !errors.Is(err, ErrKeyTooLong) {
		t.Errorf("staged: %v", err)
	}
	mustSet(t, e, PartitionOf(section), string(tooLong), []byte("v"))
	e.checkSums(t)
}

// TestTables: a database takes memory from its first key on, and only then.
func TestTables(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4, Policy: NoEviction})
	const section = 5<<databaseShift | 9
	before := e.Stats()
	get(e, section, "key")
	with(e, section, 1, func(x Txn) {
		x.Delete([]byte("key"))
		x.VersionOf([]byte("key"))
		x.Select(6).Peek([]byte("key"))
	})
	e.Drop(9)
	e.Clear(section)
	e.Walk(section, 0, 10, 1, func(Item) bool { return true })
	if st := e.Stats(); st.Used != before.Used || st.Fixed != before.Fixed {
		t.Errorf("reading an empty database took %d bytes, %d of them fixed", st.Used-before.Used, st.Fixed-before.Fixed)
	}
	for p := range uint16(Partitions) {
		mustSet(t, e, Section(p, 5), "key", nil)
	}
	if n := e.Stats().Fixed - before.Fixed; n != tableSize {
		t.Errorf("a database has %d bytes, want %d", n, tableSize)
	}
	e.checkSums(t)
	e.Reset(1)
	e.Reset(1)
	if st := e.Stats(); st.Fixed != before.Fixed+tableSize || st.Used != st.Fixed || st.Keys != 0 {
		t.Errorf("after a reset: %+v", st)
	}
	e.checkSums(t)
}

// TestTableWithoutMemory: where no memory is left, the first key of a database is refused, and all
// others are served as before.
func TestTableWithoutMemory(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4, Policy: NoEviction, Forms: bags()})
	mustSet(t, e, 1<<databaseShift, "there", nil)
	full := false
	for i := 0; !full; i++ {
		with(e, 0, 1, func(x Txn) {
			full = errors.Is(x.Set(fmt.Append(nil, i), make([]byte, 3000), TypeString, 0), ErrMemory)
		})
	}
	before := e.Stats()
	const section = 2<<databaseShift | 9
	with(e, section, 1, func(x Txn) {
		if err := x.Set([]byte("key"), nil, TypeString, 0); !errors.Is(err, ErrMemory) {
			t.Errorf("set: %v", err)
		}
		if err := x.Reserve(Room{Roots: []int{10 + bagOwn}}); !errors.Is(err, ErrMemory) {
			t.Errorf("reserved: %v", err)
		}
		if _, ok := x.Peek([]byte("key")); ok {
			t.Error("the key is there")
		}
	})
	if st := e.Stats(); st.Fixed != before.Fixed || st.Keys != before.Keys {
		t.Errorf("%+v, before %+v", st, before)
	}
	mustSet(t, e, 1<<databaseShift, "there", []byte("v"))
	e.checkSums(t)
	e.SetPolicy(AllKeys)
	mustSet(t, e, section, "key", nil)
	makeBag(t, e, Section(9, 3), "bag", 3, 10)
	e.checkSums(t)
}

// TestDropAndClear: a drop takes all databases of a partition, a clear one, and doomed records of one
// name in several databases are told apart.
func TestDropAndClear(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: testMin, Shards: 2})
	const p, keys = 9, 1000
	databases := []uint8{0, 1, 7}
	fill := func(value string) {
		for _, d := range databases {
			for i := range keys {
				mustSet(t, e, Section(p, d), fmt.Sprint(i), []byte(value))
			}
		}
	}
	fill("first")
	if n := e.Clear(Section(p, 1)); n != keys || e.Count(p) != 2*keys || e.CountSection(Section(p, 1)) != 0 {
		t.Errorf("cleared %d keys, %d are left", n, e.Count(p))
	}
	fill("second")
	s := e.shardOf(p)
	s.mu.Lock()
	all, n := s.dropped.doomAll(allOf(p))
	s.mu.Unlock()
	if len(all) != 3 || n != 3*keys || e.Count(p) != 0 {
		t.Errorf("doomed %d indexes with %d keys, %d are left", len(all), n, e.Count(p))
	}
	fill("third")
	e.checkSums(t)
	for i := range 2 * keys {
		s.dropped.drainSlice(all[i%3], 2)
		if i%100 == 0 {
			for s.slabs.compact() {
			}
			e.checkSums(t)
		}
	}
	for _, d := range databases {
		for i := range keys {
			if got := get(e, Section(p, d), fmt.Sprint(i)); string(got) != "third" {
				t.Fatalf("key %d of database %d is %q", i, d, got)
			}
		}
	}
	h := func() *Hold {
		x := e.Lock(Section(p, 1), 1)
		defer x.Unlock()
		return x.Hold()
	}()
	yes := func() bool { return true }
	if e.ClearUnheld(Section(p, 7), yes) != h || e.DropUnheld(p, yes) != h || e.Count(p) != 3*keys {
		t.Errorf("a held partition was dropped, or a part of it: %d keys", e.Count(p))
	}
	h.End()
	if e.ClearUnheld(Section(p, 7), yes) != nil || e.Count(p) != 2*keys || e.DropUnheld(p, yes) != nil || e.Count(p) != 0 {
		t.Errorf("%d keys are left", e.Count(p))
	}
	e.checkSums(t)
}

// TestHoldInDatabase: a hold is on all databases of its partition, and its holder goes on in the one
// where it began.
func TestHoldInDatabase(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 2})
	const p, database = 9, 4
	with(e, p, 1, func(x Txn) { must(t, x.Set([]byte("soon"), nil, TypeString, 10)) })
	x := e.Lock(Section(p, database), 5)
	must(t, x.Set([]byte("soon"), nil, TypeString, 10))
	h := x.Hold()
	x.Unlock()
	e.Sweep(20, e.Pages())
	if e.Holder(p) != h || h.Partition() != p || h.Section() != Section(p, database) || e.Count(p) != 2 {
		t.Errorf("held by %p, want %p, %d keys", e.Holder(p), h, e.Count(p))
	}
	with(e, Section(p, 1), 20, func(x Txn) {
		if x.Holder() != h {
			t.Error("another database is not held")
		}
	})
	x = h.Lock()
	if _, ok := x.Peek([]byte("soon")); !ok || x.Section() != Section(p, database) {
		t.Errorf("the holder finds its key: %t, in section %d", ok, x.Section())
	}
	x.Unlock()
	h.End()
	e.Sweep(20, e.Pages())
	if n := e.Count(p); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// TestVersionsOfDatabases: versions, marks and who waits do not see what happens to a key of the same
// name in another database.
func TestVersionsOfDatabases(t *testing.T) {
	const p = 2
	w := newWatched(t, 4<<20)
	version := func(d uint8) (v Version) {
		with(w.Engine, Section(p, d), 1, func(x Txn) { v = x.VersionOf([]byte("k")) })
		return v
	}
	var before [Databases]Version
	for d := range uint8(Databases) {
		before[d] = version(d)
		w.mark(t, Section(p, d), "k", 1, uint64(d))
	}
	mustSet(t, w.Engine, Section(p, 3), "k", nil)
	for d := range uint8(Databases) {
		if (version(d) != before[d]) != (d == 3) {
			t.Errorf("database %d: version %v, was %v", d, version(d), before[d])
		}
	}
	if told, _ := w.take(); fmt.Sprint(told) != "[1 3]" {
		t.Errorf("told %q", told)
	}
	mustSet(t, w.Engine, p, "k", nil)
	if told, _ := w.take(); fmt.Sprint(told) != "[1 0]" {
		t.Errorf("told %q", told)
	}
}

// TestAwaitInDatabases: those that wait in several databases of one partition are served by their own
// keys, under one hold.
func TestAwaitInDatabases(t *testing.T) {
	ws := newWaiters(t)
	const p = 2
	ws.await(p, "k", "k")
	ws.await(Section(p, 1), "k", "k")
	last := ws.await(Section(p, 2), "k", "k")
	ws.set(t, Section(p, 1), "k")
	ws.want(t, "k")
	if ws.e.CountSection(Section(p, 1)) != 0 || last.Section() != Section(p, 2) || last.Partition() != p {
		t.Errorf("%d keys are left; it waits in section %d", ws.e.Count(p), last.Section())
	}
	ws.set(t, p, "k")
	ws.want(t, "k")
	ws.e.Leave(last)
	ws.nobody(t)

	const clients = 3 * servingSteps
	for d := range uint8(2) {
		for range clients {
			ws.await(Section(p, d), "none", "k")
		}
	}
	x := ws.e.Lock(p, 1)
	for d := range uint8(2) {
		must(t, x.Select(d).Set([]byte("k"), nil, TypeString, 0))
	}
	x.Unlock()
	if len(ws.holds) != 1 {
		t.Fatalf("%d holds on one partition", len(ws.holds))
	}
	h := ws.holds[0]
	for !h.ServeOn() {
	}
	h.End()
	if len(ws.served) != 2*clients {
		t.Errorf("%d were served", len(ws.served))
	}
	ws.nobody(t)
}

// TestAnnouncedSection: who is told of an event learns in which section that was.
func TestAnnouncedSection(t *testing.T) {
	var told []string
	e := open(t, Config{MaxBytes: testMin, Shards: 2, Announce: func(section uint16, key []byte, event Event) {
		told = append(told, fmt.Sprint(PartitionOf(section), " ", DatabaseOf(section), " ", string(key), " ", event))
	}})
	e.AnnounceNew(true)
	for _, d := range []uint8{0, 6} {
		with(e, Section(9, d), 1, func(x Txn) { must(t, x.Set([]byte("key"), nil, TypeString, 2)) })
		with(e, Section(9, d), 3, func(x Txn) { x.Find([]byte("key")) })
	}
	if got, want := fmt.Sprint(told), fmt.Sprintf("[9 0 key %[1]d 9 0 key %[2]d 9 6 key %[1]d 9 6 key %[2]d]", Created, Expired); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

// TestReserveInDatabase: what is reserved for a root has room for the byte behind its key.
func TestReserveInDatabase(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 1, Forms: bags()})
	for _, section := range []uint16{9, Section(9, 1)} {
		for n := range 64 {
			with(e, section, 1, func(x Txn) {
				must(t, x.Reserve(Room{Roots: []int{n + bagOwn}}))
				class := e.classes.of(e.cellLen(e.makeHeader(typeElsewhere, section, n, rootSize+bagOwn, true)))
				if x.s.slabs.kinds[mainCells].classes[class].cells == 0 {
					t.Errorf("section %d: a root with a key of %d bytes has no cell", section, n)
				}
			})
			for x := &e.shards[0].slabs; x.compact(); {
			}
		}
	}
}
