package ownership

import (
	"fmt"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// setOf returns the set of the partitions.
func setOf(partitions ...uint16) (set ring.PartitionSet) {
	for _, p := range partitions {
		set.Add(p)
	}
	return set
}

// listOf returns the partitions of a set.
func listOf(set ring.PartitionSet) (list []uint16) {
	for p := range uint16(ring.Partitions) {
		if set.Has(p) {
			list = append(list, p)
		}
	}
	return list
}

// leveled returns a table of HoldLevel that is otherwise like table's.
func leveled(before *ring.Table, share map[string]int, names ...string) *ring.Table {
	t := table(before, share, names...)
	t.Level = ring.HoldLevel
	return t
}

// TestHeldIsHandedOverLater: a node that obeys a table although it holds partitions names them, and
// hands each of them over when its hold has ended.
func TestHeldIsHandedOverLater(t *testing.T) {
	for _, broken := range []bool{false, true} {
		r := newRig(t, Broken{HandHeld: broken})
		next := leveled(r.first(), map[string]int{"a@1": 0, "b@2": all}, "a@1", "b@2")
		r.held = setOf(5, 6)
		r.install(next)
		if broken {
			r.want("obey:2/0+0 barrier hand review settle:0 refeed")
			continue
		}
		r.want("obey:2/0+0 barrier obey:2/0+0 hand review settle:0 refeed")
		if v := r.m.View(); v.Held != r.held || v.Copies(5) {
			t.Errorf("the view holds %v, and has a copy of what is held: %t", v.Held, v.Copies(5))
		}
		r.m.Take(r.now, 11, next)
		r.want("reply:11/0@2 held:[5 6]")
		r.m.Release(12)
		r.m.Take(r.now, 13, &ring.Table{Epoch: 1, Issuer: "a@1", Seed: 7}) // of a level that knows no such answer
		r.want("reply:13/1@0")

		r.heirs = []string{"b@2"}
		r.m.Released(r.now, 5)
		r.want("obey:2/0+0 hand tell:b@2 review settle:0 refeed")
		r.m.Take(r.now, 14, next)
		r.want("")
		r.m.Released(r.now, 5) // nobody knows what that should mean
		r.want("")
		r.m.Flushed(r.hand, "b@2")
		r.want("finish reply:14/0@2 held:[6]")
		r.heirs = nil
		r.m.Released(r.now, 6)
		r.want("obey:2/0+0 hand review settle:0 refeed reply:12/0@2")
	}
}

// TestHoldsOfLowerLevels: below HoldLevel a table is obeyed when nothing is held any more, and so is
// another cluster's.
func TestHoldsOfLowerLevels(t *testing.T) {
	r := newRig(t)
	next := table(r.first(), map[string]int{"a@1": 0, "b@2": all}, "a@1", "b@2")
	r.install(next)
	var waits []bool
	for actions := r.m.Actions(); len(actions) > 0; actions = r.m.Actions() {
		for _, a := range actions {
			if b, ok := a.(Barrier); ok {
				waits = append(waits, b.Holds)
			}
			r.run(a)
		}
	}
	foreign := leveled(next, map[string]int{"a@1": all}, "a@1")
	foreign.Seed = 8
	r.install(foreign)
	for _, a := range r.m.Actions() {
		if b, ok := a.(Barrier); ok {
			waits = append(waits, b.Holds)
		}
	}
	if fmt.Sprint(waits) != "[true true]" {
		t.Errorf("the barriers wait for holds: %v", waits)
	}
}

// TestHeldElsewhere: of what a node gains it claims everything but what others still hold. It asks
// again for that, and for nothing else.
func TestHeldElsewhere(t *testing.T) {
	for _, broken := range []bool{false, true} {
		r := newRig(t, Broken{AskOnce: broken})
		next := leveled(r.first(), map[string]int{"a@1": all - 500, "b@2": 250, "c@3": 250}, "a@1", "b@2", "c@3")
		r.install(next)
		r.want("obey:2/3096+500 barrier hand review settle:500 refeed ask:b@2/0 ask:c@3/0")
		ack := func(name string, held ...uint16) {
			r.m.Acknowledged(r.now, r.asks[name], name, 2, setOf(held...))
		}
		ack("b@2", 3100, 3101, 5) // a has 5 already
		r.want("")                // c may serve anything
		ack("c@3")
		r.want("settle:2 claim:498 barrier refeed obey:2/3594+2")
		if !r.ended("b@2", 3100) || !r.ended("c@3", 3400) {
			t.Error("b has acknowledged, and counts as one that has not")
		}
		if broken {
			if _, ok := r.m.Due(); ok {
				t.Error("it asks again")
			}
			continue
		}
		before := r.now
		r.pass()
		r.want("ask:b@2/1")
		if r.now != before+HeldPeriod {
			t.Errorf("asked again after %v", r.now-before)
		}
		ack("b@2", 3101)
		r.want("settle:1 claim:1 barrier refeed obey:2/3595+1")
		r.pass()
		r.want("ask:b@2/2")
		r.m.Failed(r.now, r.asks["b@2"], false)
		r.pass()
		r.want("ask:b@2/3")
		ack("b@2")
		r.want("settle:0 claim:1 barrier refeed obey:2/3596+0")
		if _, ok := r.m.Due(); ok {
			t.Error("the machine waits for a time though it has everything")
		}
	}
}

// TestHeldByWhoeverDied: what a node held when it died it has not handed over, though it has acknowledged the table. So
// a copy that was in sync with it is whole, and others are not.
func TestHeldByWhoeverDied(t *testing.T) {
	for _, broken := range []bool{false, true} {
		for _, died := range []string{"another process", "silence"} {
			r := newRig(t, Broken{ForgetHeld: broken})
			names := []string{"a@1", "b@2"}
			if died == "silence" { // the table has dropped it
				names = names[:1]
			}
			r.install(leveled(r.first(), map[string]int{"a@1": all}, names...))
			r.want("obey:2/3096+1000 barrier hand review settle:1000 refeed ask:b@2/0")
			r.m.Acknowledged(r.now, r.asks["b@2"], "b@2", 2, setOf(3200))
			r.want("settle:1 claim:999 barrier refeed obey:2/4095+1")
			if !r.ended("b@2", 3300) {
				t.Error("b has acknowledged, and counts as one that has not")
			}
			r.pass()
			r.want("ask:b@2/1")
			if died == "silence" {
				r.pass()
			} else {
				r.m.Acknowledged(r.now, r.asks["b@2"], "b@7", 2, setOf())
			}
			r.want("settle:0 claim:1 barrier refeed obey:2/4096+0")
			if r.ended("b@2", 3200) != broken {
				t.Errorf("broken %v, %s: b has handed over what it held: %v", broken, died, !broken)
			}
		}
	}
}

// TestHeldByWhoeverWasDropped: a node that answers is not silent. If it falls silent, it does not go on
// with what it held.
func TestHeldByWhoeverWasDropped(t *testing.T) {
	r := newRig(t)
	r.install(leveled(r.first(), map[string]int{"a@1": all}, "a@1"))
	r.want("obey:2/3096+1000 barrier hand review settle:1000 refeed ask:b@2/0")
	for i := range 20 { // one second
		r.m.Acknowledged(r.now, r.asks["b@2"], "b@2", 2, setOf(3200))
		if i == 0 {
			r.want("settle:1 claim:999 barrier refeed obey:2/4095+1")
		}
		r.pass()
		r.want(fmt.Sprintf("ask:b@2/%d", i+1))
	}
	answered := r.now
	r.pass()
	r.want("settle:0 claim:1 barrier refeed obey:2/4096+0")
	if silent := r.now - answered; silent < r.m.cfg.StallLimit-HeldPeriod || silent > r.m.cfg.StallLimit {
		t.Errorf("its silence counts after %v", silent)
	}
}

// TestHeldComesBack: what a later table gives back is claimed when the hold has ended, and begins anew
// then if that table says so.
func TestHeldComesBack(t *testing.T) {
	for _, since := range []uint64{1, 3} {
		r := newRig(t)
		second := leveled(r.first(), map[string]int{"a@1": 0, "b@2": all}, "a@1", "b@2")
		r.held = setOf(5)
		r.install(second)
		r.want("obey:2/0+0 barrier obey:2/0+0 hand review settle:0 refeed")
		third := leveled(second, map[string]int{"a@1": all - 1000, "b@2": 1000}, "a@1", "b@2")
		third.Since[5] = since
		r.install(third)
		r.want("obey:3/0+3096 barrier hand review settle:3096 refeed ask:b@2/0")
		r.obeyed("b@2", 3)
		r.want("settle:1 claim:3095 barrier refeed obey:3/3095+1")
		r.now += time.Second
		r.m.Released(r.now, 5)
		r.want("obey:3/3095+1 hand review settle:1 refeed settle:0 claim:1 barrier refeed obey:3/3096+0")
	}
}
