package engine

import (
	"fmt"
	"slices"
	"testing"
)

const unitPartition = 9

// unitOf is a unit as an owner logs it: f's changes of unitPartition.
func unitOf(tb testing.TB, f func(x Txn)) []byte {
	tb.Helper()
	e := open(tb, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	e.OpenFeed(testReceiver, func() {})
	e.Feed(unitPartition, testReceiver, Mark{})
	with(e, unitPartition, 1, func(x Txn) {
		x.BeginUnit()
		f(x)
	})
	unit, more := e.Collect(testReceiver, 0, nil, 1<<20)
	if err := CheckEffects(unit, nil); err != nil || more {
		tb.Fatalf("collected: %v, more %t", err, more)
	}
	return unit
}

// setMany sets n keys.
func setMany(tb testing.TB, n int) func(x Txn) {
	return func(x Txn) {
		for i := range n {
			if err := x.Set(fmt.Append(nil, "key:", i), []byte("v"), TypeString, 0); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// A unit within another one does not end it.
func TestUnitInUnit(t *testing.T) {
	unit := unitOf(t, func(x Txn) {
		setMany(t, 2)(x)
		for range 2 {
			x.BeginUnit()
			setMany(t, 3)(x)
			x.EndUnit()
			setMany(t, 4)(x)
		}
	})
	if kind, _, _, size := NextEffect(unit); kind != EffectUnit || size != len(unit) {
		t.Errorf("%d bytes begin with an effect of kind %d and %d bytes, and are not one unit", len(unit), kind, size)
	}
}

// A large value stands behind its unit, since it is not logged.
func TestLargeValueBehindUnit(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
	e.OpenFeed(testReceiver, func() {})
	e.Feed(unitPartition, testReceiver, Mark{})
	with(e, unitPartition, 1, func(x Txn) {
		x.BeginUnit()
		setMany(t, 3)(x)
		if err := x.Set([]byte("large"), make([]byte, 100_000), TypeString, 0); err != nil {
			t.Fatal(err)
		}
		setMany(t, 3)(x)
	})
	var kinds []EffectKind
	for more := true; more; {
		var got []byte
		got, more = e.Collect(testReceiver, 0, nil, 1)
		kind, _, _, size := NextEffect(got)
		if size != len(got) {
			t.Fatalf("%d of %d bytes are an effect", size, len(got))
		}
		kinds = append(kinds, kind)
	}
	if want := []EffectKind{EffectUnit, EffectLarge}; !slices.Equal(kinds, want) {
		t.Errorf("logged %v, want %v", kinds, want)
	}
}

// collected returns the kinds of all effects in the log of a shard, and the effects.
func collected(t *testing.T, e *Engine, shard int) (kinds []EffectKind, effects []byte) {
	t.Helper()
	effects, more := e.Collect(testReceiver, shard, nil, 1<<20)
	if err := CheckEffects(effects, nil); err != nil || more {
		t.Fatalf("collected: %v, more %t", err, more)
	}
	for rest := effects; len(rest) > 0; {
		kind, _, _, size := NextEffect(rest)
		kinds, rest = append(kinds, kind), rest[size:]
	}
	return kinds, effects
}

// The unit of a hold gathers over all its slices, beside the effects of others. Marks wait for it, a
// snapshot does not.
func TestUnitOfHold(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
	e.OpenFeed(testReceiver, func() {})
	e.Feed(unitPartition, testReceiver, Mark{})
	e.Feed(unitPartition+1, testReceiver, Mark{})
	want := func(what string, want ...EffectKind) []byte {
		t.Helper()
		kinds, effects := collected(t, e, 0)
		if !slices.Equal(kinds, want) {
			t.Errorf("%s: logged %v, want %v", what, kinds, want)
		}
		return effects
	}
	x := e.Lock(unitPartition, 1)
	x.BeginUnit()
	setMany(t, 2)(x)
	h := x.HoldUnit()
	x.Unlock()
	mustSet(t, e, unitPartition+1, "other", nil)
	want("beside it", EffectSet)
	for range 3 {
		x = h.Lock()
		setMany(t, 3)(x)
		x.Unlock()
	}
	e.MarkFeed(unitPartition, testReceiver, Mark{1, 1})
	e.MarkFeed(unitPartition+1, testReceiver, Mark{1, 1})
	want("a mark of another one", EffectMark)
	if _, done := e.Snapshot(unitPartition, testReceiver, 0, 1<<20, 1); !done {
		t.Error("the snapshot waits")
	}
	want("a snapshot", EffectSet, EffectSet, EffectSet)
	h.End()
	effects := want("at its end", EffectUnit, EffectMark)
	count := 0
	for rest := effects[2*wordSize:]; len(rest) > 2*wordSize; count++ {
		_, _, _, size := NextEffect(rest)
		rest = rest[size:]
	}
	if count != 11 {
		t.Errorf("the unit has %d effects, want 11", count)
	}
	mustSet(t, e, unitPartition, "behind", nil)
	want("behind it", EffectSet)
}

// A unit that is too long, or whose feed ends meanwhile, goes with its partition's feed. All others go
// on.
func TestUnitStopsOneFeed(t *testing.T) {
	for _, long := range []bool{true, false} {
		e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
		woken := 0
		e.OpenFeed(testReceiver, func() { woken++ })
		e.Feed(unitPartition, testReceiver, Mark{})
		e.Feed(unitPartition+1, testReceiver, Mark{})
		mustSet(t, e, unitPartition+1, "before", nil)
		x := e.Lock(unitPartition, 1)
		h := x.HoldUnit()
		setMany(t, 3)(x)
		x.Unlock()
		e.MarkFeed(unitPartition, testReceiver, Mark{1, 1})
		reserve := e.feeds.reserve.Load()
		var want []uint16
		if long {
			want = append(want, unitPartition)
			for range 6 {
				x = h.Lock()
				if err := x.Set([]byte("long"), make([]byte, 60_000), TypeString, 0); err != nil {
					t.Fatal(err)
				}
				for i := range 10 {
					if err := x.Set(fmt.Append(nil, i), make([]byte, 9_000), TypeString, 0); err != nil {
						t.Fatal(err)
					}
				}
				x.Unlock()
			}
		} else {
			e.Unfeed(unitPartition, testReceiver, Mark{})
		}
		if now := e.feeds.reserve.Load(); now <= reserve {
			t.Errorf("long %t: %d blocks in the reserve, and %d when the unit is dropped", long, reserve, now)
		}
		h.End()
		if kinds, _ := collected(t, e, 0); !slices.Equal(kinds, []EffectKind{EffectSet}) {
			t.Errorf("long %t: logged %v, want what was set before", long, kinds)
		}
		if got := e.Overflowed(testReceiver, nil); !slices.Equal(got, want) || e.LostLog(testReceiver) {
			t.Errorf("long %t: overflowed are %v, want %v and no log", long, got, want)
		}
		if got := e.Overflowed(testReceiver, nil); len(got) > 0 || woken == 0 {
			t.Errorf("long %t: once more %v; woken %d times", long, got, woken)
		}
	}
}

// The log of one receiver overflows with its mark behind a unit. The other receiver gets its mark.
func TestMarkOverflowsBehindUnit(t *testing.T) {
	const full, other = testReceiver + 1, testReceiver
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
	for _, r := range []Receiver{full, other} {
		e.OpenFeed(r, func() {})
		e.Feed(unitPartition, r, Mark{})
	}
	x := e.Lock(unitPartition, 1)
	h := x.HoldUnit()
	x.Unlock()
	for _, r := range []Receiver{full, other} {
		e.MarkFeed(unitPartition, r, Mark{1, 1})
	}
	e.Feed(unitPartition+1, full, Mark{})
	for l := e.shards[0].feeds.log(full); l.bytes+2*wordSize <= e.feeds.longest(); {
		e.MarkFeed(unitPartition+1, full, Mark{1, 1})
	}
	h.End()
	if !e.LostLog(full) {
		t.Error("the full log has not overflowed")
	}
	if kinds, _ := collected(t, e, 0); !slices.Equal(kinds, []EffectKind{EffectMark}) {
		t.Errorf("logged %v for the other receiver, want its mark", kinds)
	}
}

// A snapshot's value with parts waits for the unit of a hold, however long it is, and then comes
// whole. It does not make the unit too long.
func TestChunksWaitForUnit(t *testing.T) {
	f := newBagFeed(t, 9)
	makeBag(t, f.owner, unitPartition, "bag:1", 300, 3_000)
	f.owner.Feed(unitPartition, testReceiver, Mark{})
	x := f.owner.Lock(unitPartition, 1)
	h := x.HoldUnit()
	x.Unlock()
	x = h.Lock()
	v, _ := bag(x, "bag:1")
	bagDelete(v, 7)
	x.Unlock()
	var cursor uint64
	var done bool
	for range 40 {
		cursor, done = f.owner.Snapshot(unitPartition, testReceiver, cursor, 64<<10, 1)
		f.collect()
	}
	if done || len(f.contents(f.replica, unitPartition)) != 0 {
		t.Errorf("the snapshot has come to its end: %t", done)
	}
	h.End()
	for range 40 {
		if !done {
			cursor, done = f.owner.Snapshot(unitPartition, testReceiver, cursor, 64<<10, 1)
			f.collect()
		}
	}
	f.compare(unitPartition)
	if stopped := f.owner.Overflowed(testReceiver, nil); len(stopped) > 0 || !done {
		t.Errorf("the feeds of %v have ended; the snapshot is done: %t", stopped, done)
	}
}

// What is evicted of other partitions to make room for a unit goes with it, wherever those are at
// the receiver, and although the unit is refused there.
func TestUnitEvicts(t *testing.T) {
	const other = unitPartition + 2
	owner := open(t, Config{MaxBytes: 2 << 20, Shards: 1})
	replica := open(t, Config{MaxBytes: 8 << 20, Shards: 4})
	owner.OpenFeed(testReceiver, func() {})
	owner.Feed(other, testReceiver, Mark{})
	value := make([]byte, 2000)
	n := 0
	for ; owner.Stats().Evicted == 0; n++ {
		mustSet(t, owner, other, fmt.Sprint("other:", n), value)
		follow(t, owner, replica, testReceiver, 0, 1, &takesAll{})
	}
	owner.Feed(unitPartition, testReceiver, Mark{})
	before := owner.Stats().Evicted
	with(owner, unitPartition, 1, func(x Txn) {
		x.BeginUnit()
		for i := range 20 {
			if err := x.Set(fmt.Append(nil, i), value, TypeString, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	if owner.Stats().Evicted == before || owner.LostLog(testReceiver) {
		t.Fatal("nothing was evicted, or the log was lost")
	}
	follow(t, owner, replica, testReceiver, 0, 1, refuses(unitPartition))
	if got, want := replica.Count(other), owner.Count(other); got != want {
		t.Errorf("%d keys are left beside the unit, want %d", got, want)
	}
	if got := replica.Count(unitPartition); got != 0 {
		t.Errorf("%d keys of a unit that was refused", got)
	}
}

// A value that is built aside in a hold is in no unit, however long it gets; in the unit, it gets its
// key.
func TestUnitWithoutAside(t *testing.T) {
	f := newBagFeed(t, 3)
	f.owner.Feed(unitPartition, testReceiver, Mark{})
	x := f.owner.Lock(unitPartition, 1)
	h := x.HoldUnit()
	key, _, err := x.NewAside(bagType, bagOwn)
	if err != nil {
		t.Fatal(err)
	}
	x.Unlock()
	for id := range uint32(3 * maxUnit / 10_000) {
		x = h.Lock()
		v, there := x.Aside(&key)
		if !there {
			t.Fatal("the value is gone")
		}
		if err := bagReserve(v, 10_000); err != nil {
			t.Fatal(err)
		}
		if err := bagSet(v, id, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
		x.Unlock()
		f.collect()
	}
	x = h.Lock()
	v, _ := x.Aside(&key)
	if err := x.Rename(v, []byte("bag:1"), 0); err != nil {
		t.Fatal(err)
	}
	x.Unlock()
	h.End()
	f.collect()
	f.compare(unitPartition)
	if lost := f.owner.Overflowed(testReceiver, nil); len(lost) > 0 || len(f.taker.lacks) > 0 {
		t.Errorf("the feeds of %v have ended, the receiver lacks %v", lost, f.taker.lacks)
	}
}

// A long unit goes into the log with its blocks. What is in front and behind stays where it is.
func TestLongUnitIsSpliced(t *testing.T) {
	for _, long := range []int{splicedFrom - 100, splicedFrom, splicedFrom + blockSize/2, maxUnit - 100_000} {
		for before := 0; before < 2*blockSize; before += 777 {
			e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
			e.OpenFeed(testReceiver, func() {})
			e.Feed(unitPartition, testReceiver, Mark{})
			e.Feed(unitPartition+1, testReceiver, Mark{})
			if before > 0 {
				mustSet(t, e, unitPartition+1, "before", make([]byte, before))
			}
			with(e, unitPartition, 1, func(x Txn) {
				x.BeginUnit()
				for n := 0; n < long; n += 1000 {
					if err := x.Set(fmt.Append(nil, "key:", n), make([]byte, 1000), TypeString, 0); err != nil {
						t.Fatal(err)
					}
				}
				e.feeds.trim(0)
				had := e.feeds.charged.Load()
				x.EndUnit()
				if more := (e.feeds.charged.Load() - had) / blockSize; long >= splicedFrom && more > 1 {
					t.Errorf("%d bytes behind %d: the log takes %d blocks more", long, before, more)
				}
			})
			with(e, unitPartition, 1, func(x Txn) {
				x.BeginUnit()
				setMany(t, 2)(x)
			})
			mustSet(t, e, unitPartition+1, "behind", make([]byte, 100))
			want := []EffectKind{EffectSet, EffectUnit, EffectUnit, EffectSet}
			if before == 0 {
				want = want[1:]
			}
			if kinds, _ := collected(t, e, 0); !slices.Equal(kinds, want) {
				t.Fatalf("%d bytes behind %d: logged %v, want %v", long, before, kinds, want)
			}
			e.CloseFeed(testReceiver)
			e.checkSums(t)
		}
	}
}
