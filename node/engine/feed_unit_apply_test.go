package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

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
			mustBag(t, x, "bag").Note([]byte{})
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
		mustBag(t, x, "bag")
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

// A unit of a few long effects takes several locks, as one of many short ones does.
func TestLongUnitTakesSeveralLocks(t *testing.T) {
	const effects, each, marked = 12, 32 << 10, 0
	form := bags()[bagType]
	applied, most, sum := 0, 0, 0
	form.Apply = func(v Parts, delta []byte) error {
		if v.t.s.now != marked { // by Lock
			v.t.s.now, applied = marked, 0
		}
		applied += len(delta)
		most, sum = max(most, applied), sum+len(delta)
		return nil
	}
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4, Forms: map[Type]Form{bagType: form}})
	unit := unitOf(t, func(x Txn) {
		v := mustBag(t, x, "bag")
		for range effects {
			v.Note(make([]byte, each))
		}
	})
	if err := e.Apply(unit, 0, marked+1, &takesAll{}); err != nil {
		t.Fatal(err)
	}
	if sum < effects*each || most >= applyBytes+each {
		t.Errorf("%d bytes are applied under one lock, %d in all, want less than %d", most, sum, applyBytes+each)
	}
}
