package engine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestClearIsLost: those that wait in groups learn that their database was cleared, others do not.
func TestClearIsLost(t *testing.T) {
	ws := newWaiters(t)
	const p = 2
	group := func(section uint16, name string) {
		with(ws.e, section, 1, func(x Txn) {
			awaitWish(x, waiterOf(name, false), Wish{Type: TypeString, Keys: [][]byte{[]byte("k")}, Positions: []Position{End}, Group: []byte("g")})
		})
	}
	for d := range uint8(3) {
		ws.set(t, Section(p, d), "k")
		group(Section(p, d), fmt.Sprint("in ", d))
	}
	yes := func() bool { return true }
	ws.e.ClearUnheld(Section(p, 1), yes)
	ws.want(t, "in 1")
	ws.e.DropUnheld(p, yes)
	ws.want(t, "in 0", "in 2")
	ws.nobody(t)
}

// TestEffectsOfDatabase0 has the effects of database 0 be what they were before there were others.
func TestEffectsOfDatabase0(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 1})
	e.OpenFeed(testReceiver, func() {})
	const p = 5
	e.Feed(p, testReceiver, Mark{})
	word := func(h header) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(h))) }
	log := func(want string) {
		t.Helper()
		got, _ := e.Collect(testReceiver, 0, nil, 1<<20)
		if string(got) != want {
			t.Errorf("logged %q, want %q", got, want)
		}
		if err := CheckEffects(got, nil); err != nil {
			t.Error(err)
		}
	}
	const (
		set      = header(TypeString) | p<<partitionShift | 3<<keyShift | 1<<valueShift
		deletion = header(EffectDelete)<<valueShift | p<<partitionShift | 3<<keyShift
		clearing = header(EffectClear)<<valueShift | p<<partitionShift
		inOther  = databaseBit + 1<<keyShift
	)
	mustSet(t, e, p, "key", []byte("v"))
	with(e, p, 1, func(x Txn) { x.Delete([]byte("key")) })
	mustSet(t, e, p, "key", []byte("v"))
	e.Clear(p)
	log(word(set) + "keyv" + word(deletion) + "key" + word(set) + "keyv" + word(clearing))
	mustSet(t, e, p, "key", []byte("v"))
	e.Drop(p)
	log(word(set) + "keyv" + word(clearing))

	mustSet(t, e, Section(p, 2), "key", []byte("v"))
	mustSet(t, e, p, "key", []byte("v"))
	with(e, Section(p, 2), 1, func(x Txn) { x.Delete([]byte("key")) })
	mustSet(t, e, Section(p, 2), "key", []byte("v"))
	log(word(set+inOther) + "key\x02v" + word(set) + "keyv" + word(deletion+inOther) + "key\x02" + word(set+inOther) + "key\x02v")
	e.Clear(p)
	mustSet(t, e, p, "key", []byte("v"))
	e.Clear(Section(p, 2))
	log(word(clearing+inOther) + "\x00" + word(set) + "keyv" + word(clearing+inOther) + "\x02")
	mustSet(t, e, Section(p, 2), "key", []byte("v"))
	e.Drop(p)
	log(word(set+inOther) + "key\x02v" + word(clearing))
}

// TestUnitOfDatabases: the changes of one lock, or hold, in several databases are one unit, with the
// large values behind it.
func TestUnitOfDatabases(t *testing.T) {
	owner, replica := open(t, Config{MaxBytes: 64 << 20, Shards: 1}), open(t, Config{MaxBytes: 64 << 20, Shards: 2})
	owner.OpenFeed(testReceiver, func() {})
	const p = 9
	owner.Feed(p, testReceiver, Mark{})
	large := make([]byte, 100_000)
	change := func(x Txn) {
		for _, d := range []uint8{0, 3, 15} {
			must(t, x.Select(d).Set([]byte("key"), fmt.Append(nil, d), TypeString, 0))
			must(t, x.Select(d).Set([]byte("large"), large[:50_000+int(d)], TypeString, 0))
		}
		x.Select(3).Delete([]byte("key"))
	}
	with(owner, Section(p, 3), 1, func(x Txn) {
		x.BeginUnit()
		change(x)
	})
	x := owner.Lock(Section(p, 15), 1)
	h := x.HoldUnit()
	x.Unlock()
	x = h.Lock()
	change(x)
	x.Unlock()
	h.End()
	kinds := ""
	taker := &takesAll{}
	for more := true; more; {
		var effects []byte
		effects, more = owner.Collect(testReceiver, 0, nil, 1)
		kind, _, _, _ := NextEffect(effects)
		kinds += fmt.Sprint(kind, " ")
		applyPiece(t, owner, replica, effects, 0, 1, taker)
	}
	if want := strings.Repeat(fmt.Sprint(EffectUnit, " ")+strings.Repeat(fmt.Sprint(EffectLarge, " "), 3), 2); kinds != want {
		t.Errorf("logged effects of the kinds %s, want %s", kinds, want)
	}
	for d := range uint8(Databases) {
		sameContents(t, owner, replica, Section(p, d), 0, 1)
	}
	if n := replica.Count(p); n != 5 {
		t.Errorf("the copy has %d keys", n)
	}
}

// TestRenameToDatabase: a value with parts moves to another database in one step.
func TestRenameToDatabase(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	const p = 3
	makeBag(t, e, p, "bag", 20, 300)
	makeBag(t, e, Section(p, 1), "bag", 5, 300)
	parts := e.Stats().Parts
	with(e, p, 5, func(x Txn) {
		v, _ := bag(x, "bag")
		want := bagContent(t, v)
		y := x.Select(2)
		must(t, y.Rename(v, []byte("bag"), 5000))
		got, ok := bag(y, "bag")
		if item, _ := y.Peek([]byte("bag")); !ok || item.ExpireAt() != 5000 || !maps.Equal(bagContent(t, got), want) {
			t.Errorf("there %t, expires at %d", ok, item.ExpireAt())
		}
		if _, ok := bag(x, "bag"); ok {
			t.Error("the old key is there")
		}
		must(t, x.Select(1).Rename(got, []byte("bag"), 0))
		v, _ = bag(x.Select(1), "bag")
		if !maps.Equal(bagContent(t, v), want) {
			t.Error("it is not what it was")
		}
		must(t, x.Rename(v, []byte("back"), 0))
	})
	for range 100 {
		e.Sweep(6, e.Pages())
	}
	if n, st := e.Count(p), e.Stats(); n != 1 || !hasBag(e, p, "back") || st.Parts >= parts {
		t.Errorf("%d keys, %d bytes of parts, before %d", n, st.Parts, parts)
	}
	e.checkSums(t)
}

// TestSnapshotOfDatabases: a snapshot goes through all databases of its partition, and what changes in
// between is there too, in front of it and behind.
func TestSnapshotOfDatabases(t *testing.T) {
	owner, replica := open(t, Config{MaxBytes: 64 << 20, Shards: 2}), open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	owner.OpenFeed(testReceiver, func() {})
	const p, keys = 9, 300
	databases := []uint8{0, 2, 3, 15}
	for _, d := range databases {
		for i := range keys {
			mustSet(t, owner, Section(p, d), fmt.Sprint(i), []byte("before"))
		}
	}
	owner.Feed(p, testReceiver, Mark{})
	taker, step := &takesAll{}, 0
	for cursor, done := uint64(0), false; !done; step++ {
		cursor, done = owner.Snapshot(p, testReceiver, cursor, 500, 1)
		for _, d := range databases {
			mustSet(t, owner, Section(p, d), fmt.Sprint(step%keys), []byte("since"))
			with(owner, Section(p, d), 1, func(x Txn) { x.Delete(fmt.Append(nil, step+keys/2)) })
		}
		if step == 10 {
			mustSet(t, owner, Section(p, 7), "new", []byte("since"))
		}
		follow(t, owner, replica, testReceiver, 0, 1, taker)
	}
	if step < 20 {
		t.Errorf("the snapshot came in %d pieces", step)
	}
	for d := range uint8(Databases) {
		sameContents(t, owner, replica, Section(p, d), 0, 1)
	}
	if n := replica.CountSection(Section(p, 7)); n != 1 {
		t.Errorf("%d keys of a database that was empty", n)
	}
}

// TestRenameBetweenChunks: a value whose snapshot is on its way moves to a database that the snapshot has
// behind it, and the value's goes on there.
func TestRenameBetweenChunks(t *testing.T) {
	f := newBagFeed(t, 1)
	const p = 5
	makeBag(t, f.owner, Section(p, bagDatabase), "bag:1", 1000, 100)
	makeBag(t, f.owner, p, "bag:1", 3, 100)
	f.owner.Feed(p, testReceiver, Mark{})
	cursor, done := f.owner.Snapshot(p, testReceiver, 0, 20_000, 1)
	f.collect()
	if done || f.replica.Count(p) != 1 {
		t.Fatalf("the snapshot is done: %t, %d keys", done, f.replica.Count(p))
	}
	with(f.owner, Section(p, bagDatabase), 1, func(x Txn) {
		v, _ := bag(x, "bag:1")
		must(t, x.Select(0).Rename(v, []byte("bag:1"), 0))
	})
	for !done {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, 20_000, 1)
		f.collect()
	}
	f.compare(p)
	if n := f.replica.Count(p); n != 1 || len(f.taker.lacks) != 0 {
		t.Errorf("%d keys, lacks %v", n, f.taker.lacks)
	}
}
