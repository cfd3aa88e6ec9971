package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
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

// admitsOnce admits effects until it is asked a second time.
type admitsOnce struct {
	takesAll
	asked int
}

func (t *admitsOnce) Admits(uint16) bool {
	t.asked++
	return t.asked == 1
}

// A sender that is shut out while its unit is being applied gets all of it in, and one that was
// shut out before gets nothing in.
func TestUnitIsAdmittedOnce(t *testing.T) {
	const n = 100 * applyAtOnce
	unit := unitOf(t, setMany(t, n))
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4, Forms: bags()})
	taker := &admitsOnce{}
	for want := n; ; want = 0 {
		if err := e.Apply(unit, 0, 1, taker); err != nil {
			t.Fatal(err)
		}
		if got := e.Count(unitPartition); got != want {
			t.Errorf("%d keys, want %d", got, want)
		}
		if e.Drop(unitPartition); want == 0 {
			break
		}
	}
	if taker.asked != 2 {
		t.Errorf("asked %d times about 2 units", taker.asked)
	}
}

// Shutting a sender out waits for the end of its unit, and so does a feed.
func TestUnitIsWaitedFor(t *testing.T) {
	const n = 300 * applyAtOnce
	for name, stop := range map[string]func(e *Engine){
		"DropUnfinished": func(e *Engine) { e.DropUnfinished(unitPartition) },
		"Feed":           func(e *Engine) { e.Feed(unitPartition, testReceiver, Mark{}) },
	} {
		form := bags()[bagType]
		apply, count := form.Apply, make(chan int)
		var e *Engine
		form.Apply = func(v Parts, delta []byte) error { // the first effect of the unit
			go func() {
				stop(e)
				count <- e.Count(unitPartition)
			}()
			return apply(v, delta)
		}
		e = open(t, Config{MaxBytes: 64 << 20, Shards: 4, Forms: map[Type]Form{bagType: form}})
		e.OpenFeed(testReceiver, func() {})
		unit := unitOf(t, func(x Txn) {
			if err := x.Reserve(Room{Roots: []int{3 + bagOwn}}); err != nil {
				t.Fatal(err)
			}
			v, err := newBag(x, []byte("bag"), 0)
			if err != nil {
				t.Fatal(err)
			}
			v.Note([]byte{})
			setMany(t, n)(x)
		})
		if err := e.Apply(unit, 0, 1, &takesAll{}); err != nil {
			t.Fatal(err)
		}
		if got := <-count; got != n+1 {
			t.Errorf("%s returned with %d keys of a unit of %d", name, got, n+1)
		}
	}
}

// A unit is applied wholly or not at all also if something in it is malformed, or of a type that is
// not known here.
func TestUnitIsCheckedFirst(t *testing.T) {
	good := unitOf(t, setMany(t, 50))
	strange := unitOf(t, func(x Txn) {
		setMany(t, 50)(x)
		if err := x.Reserve(Room{Roots: []int{3 + bagOwn}}); err != nil {
			t.Fatal(err)
		}
		if _, err := newBag(x, []byte("bag"), 0); err != nil {
			t.Fatal(err)
		}
	})
	broken := append([]byte{}, good...)
	binary.LittleEndian.PutUint64(broken[len(broken)-16:], 1<<40) // in the last effect
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 4})
	for name, unit := range map[string][]byte{"malformed": broken, "unknown": strange} {
		err := e.Apply(unit, 0, 1, &takesAll{})
		if err == nil || e.Count(unitPartition) != 0 {
			t.Errorf("%s: %v, %d keys", name, err, e.Count(unitPartition))
		}
		if unknown := (UnknownEffect{}); errors.As(err, &unknown) != (name == "unknown") {
			t.Errorf("%s: %v", name, err)
		}
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

// What a unit says of other partitions does not touch its own.
func TestUnitNamesPartitions(t *testing.T) {
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 1})
	mustSet(t, e, unitPartition, "key", nil)
	mustSet(t, e, unitPartition+1, "key", nil)
	unit := unitOf(t, setMany(t, 2))
	deletion := binary.LittleEndian.AppendUint64(nil, uint64(otherEffect(EffectDelete, unitPartition+1, len("key"))))
	deletion = append(deletion, "key"...)
	_, _, _, first := NextEffect(unit[2*wordSize:])
	unit = slices.Insert(unit, 2*wordSize+first, deletion...)
	n := len(unit) - 2*wordSize
	binary.LittleEndian.PutUint64(unit, uint64(otherEffect(EffectUnit, unitPartition, 0).withRest(n)))
	if err := e.Apply(unit, 0, 1, &takesAll{}); err != nil {
		t.Fatal(err)
	}
	if own, other := e.Count(unitPartition), e.Count(unitPartition+1); own != 3 || other != 0 {
		t.Errorf("%d keys in the unit's partition, and %d in the other; want 3 and 0", own, other)
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

// refuses admits all partitions but one.
type refuses uint16

func (r refuses) Admits(p uint16) bool { return p != uint16(r) }
func (refuses) Marked(uint16, Mark)    {}

// A receiver that is fed on logs the unit as one.
func TestUnitThroughAnother(t *testing.T) {
	unit := unitOf(t, setMany(t, 10*applyAtOnce))
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	e.OpenFeed(testReceiver, func() {})
	e.Feed(unitPartition, testReceiver, Mark{})
	if err := e.Apply(unit, 0, 1, &takesAll{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := e.Collect(testReceiver, unitPartition%4, nil, 1<<20); !bytes.Equal(got, unit) {
		t.Errorf("logged on in %d bytes, want the unit of %d", len(got), len(unit))
	}
}

// Times inside a value are relative to its base, which alone is shifted to the receiver's clock.
func TestBaseIsShifted(t *testing.T) {
	const p, made, ahead = 5, 1_000_000, 3_600_000
	owner := open(t, Config{MaxBytes: 8 << 20, Shards: 1, Forms: bags()})
	replica := open(t, Config{MaxBytes: 8 << 20, Shards: 1, Forms: bags()})
	baseOf := func(e *Engine, now int64, key string) (base int64) {
		with(e, p, now, func(x Txn) {
			v, ok := bag(x, key)
			if !ok {
				t.Fatalf("%s is not there", key)
			}
			base = v.Base()
		})
		return base
	}
	var effects []byte
	with(owner, p, made, func(x Txn) {
		if err := x.Reserve(Room{Roots: []int{3 + bagOwn, 4 + bagOwn}}); err != nil {
			t.Fatal(err)
		}
		if _, err := newBag(x, []byte("bag"), 0); err != nil {
			t.Fatal(err)
		}
	})
	with(owner, p, made+500, func(x Txn) {
		v, _ := bag(x, "bag")
		_, like, err := x.NewAsideLike(v)
		if err == nil {
			err = x.Rename(like, []byte("copy"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		effects = x.AppendEffect(x.AppendEffect(nil, []byte("bag")), []byte("copy"))
	})
	if err := replica.Apply(effects, ahead, made+500+ahead, &takesAll{}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"bag", "copy"} {
		if here, there := baseOf(owner, made+600, key), baseOf(replica, made+600+ahead, key); here != made || there != made+ahead {
			t.Errorf("%s: base %d, at the receiver %d, want %d and %d", key, here, there, made, made+ahead)
		}
	}
}
