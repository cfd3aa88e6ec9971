package engine

import (
	"fmt"
	"maps"
	"math"
	"testing"
)

// A value with parts gets another key in one step, whatever that had.
func TestRename(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	const p = 3
	for name, before := range map[string]func(){
		"free": func() {},
		"string": func() {
			with(e, p, 1, func(x Txn) { _ = x.Set([]byte("to"), []byte("v"), TypeString, 0) })
		},
		"parts":   func() { makeBag(t, e, p, "to", 50, 100) },
		"expired": func() { with(e, p, 1, func(x Txn) { _ = x.Set([]byte("to"), []byte("v"), TypeString, 2) }) },
	} {
		makeBag(t, e, p, "from", 20, 300)
		before()
		var pin *ValuePin
		with(e, p, 5, func(x Txn) {
			v, _ := bag(x, "from")
			want, version := bagContent(t, v), x.VersionOf([]byte("to"))
			var err error
			if pin, err = v.PinValue(); err != nil {
				t.Fatal(err)
			}
			if err := x.Rename(v, []byte("to"), 5000); err != nil {
				t.Fatal(err)
			}
			if _, found := x.Peek([]byte("from")); found {
				t.Errorf("%s: the old key is there", name)
			}
			item, _ := x.Peek([]byte("to"))
			got, ok := x.Parts(item)
			if !ok || got != v || item.ExpireAt() != 5000 || !maps.Equal(bagContent(t, got), want) || string(v.Key()) != "to" {
				t.Errorf("%s: %v, expires at %d", name, ok, item.ExpireAt())
			}
			if x.VersionOf([]byte("to")) == version {
				t.Errorf("%s: the version is the old one", name)
			}
		})
		pin.Release()
		for range 100 {
			e.Sweep(6, e.Pages())
		}
		e.checkSums(t)
		if n := e.Count(p); n != 1 {
			t.Errorf("%s: %d keys", name, n)
		}
	}
}

// A value that is built aside is seen by nobody before it gets its key.
func TestAside(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	const p = 3
	var k AsideKey
	fill := func(x Txn, from, to uint32) Parts {
		v, ok := x.Aside(&k)
		if !ok {
			t.Fatal("the value that is built aside is gone")
		}
		for id := from; id < to; id++ {
			if err := bagReserve(v, 100); err != nil {
				t.Fatal(err)
			}
			if err := bagSet(v, id, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		return v
	}
	with(e, p, 1, func(x Txn) {
		var err error
		if k, _, err = x.NewAside(bagType, bagOwn); err != nil {
			t.Fatal(err)
		}
		fill(x, 0, 10)
	})
	if n, keys := e.Count(p), e.Stats().Keys; n != 0 || keys != 0 {
		t.Errorf("%d keys in the partition, %d in all", n, keys)
	}
	with(e, p, 1, func(x Txn) {
		if err := x.Rename(fill(x, 10, 20), []byte("to"), 0); err != nil {
			t.Fatal(err)
		}
		if v, ok := bag(x, "to"); !ok || bagCount(v) != 20 {
			t.Errorf("%v", ok)
		}
		if _, ok := x.Aside(&k); ok {
			t.Error("it is still aside")
		}
	})
	if n, keys := e.Count(p), e.Stats().Keys; n != 1 || keys != 1 {
		t.Errorf("%d keys in the partition, %d in all", n, keys)
	}
	e.checkSums(t)
}

// rename renames a bag, or builds one aside, in a unit or not.
func (f *bagFeed) rename(p uint16) {
	to := fmt.Sprint("bag:", f.r.IntN(4))
	with(f.owner, f.section(p), 1, func(t Txn) {
		target := t.Select(DatabaseOf(f.section(p)))
		v, ok := bag(t, fmt.Sprint("bag:", f.r.IntN(4)))
		if ok && string(v.Key()) == to && target == t {
			return
		}
		if f.r.IntN(2) == 0 {
			t.BeginUnit()
			defer t.EndUnit()
		}
		if !ok || f.r.IntN(2) == 0 {
			var err error
			if _, v, err = t.NewAside(bagType, bagOwn); err != nil {
				f.tb.Fatal(err)
			}
			for range 1 + f.r.IntN(50) {
				f.set(t, v)
			}
			if f.r.IntN(5) == 0 {
				v.Delete()
				return
			}
		}
		if err := target.Rename(v, []byte(to), int64(f.r.IntN(2)*1000)); err != nil {
			f.tb.Fatal(err)
		}
	})
}

// A follower renames what it has, wherever the snapshot of the value is. What it lacks comes with the
// rest of the snapshot, under whatever key it has then.
func TestFeedRename(t *testing.T) {
	oneGoroutine(t)
	for seed := range uint64(10) {
		f := newBagFeed(t, seed)
		f.both = seed%2 == 1
		const p = 5
		for range 3000 {
			f.change(p)
		}
		f.owner.Feed(p, testReceiver, Mark{Kind: 1})
		for cursor, done := uint64(0), false; !done; {
			cursor, done = f.owner.Snapshot(p, testReceiver, cursor, 8_000, 1)
			for range 10 {
				f.change(p)
			}
			f.rename(p)
			f.collect()
		}
		f.compare(p) // what the follower asks for before it has the whole snapshot, it is not sent
		clear(f.taker.lacks)
		for range 10 {
			for range 20 {
				f.change(p)
			}
			f.rename(p)
			f.collect()
			if len(f.taker.lacks) > 0 {
				t.Fatalf("the follower lacks %v, of which it had all", f.taker.lacks)
			}
			f.compare(p)
		}
		for _, e := range []*Engine{f.owner, f.replica} {
			for range 20 {
				e.Sweep(1, e.Pages())
			}
			e.checkSums(t)
		}
	}
}

// TestFeedRenameBehindTheWalk: values that the snapshot is yet to come to, or to begin, get keys that it
// has passed, in both databases. So do those that were built aside since before the feed.
func TestFeedRenameBehindTheWalk(t *testing.T) {
	oneGoroutine(t)
	const p, bags = 5, 300
	for seed := range uint64(10) {
		f := newBagFeed(t, seed)
		f.both = true
		names := make([]string, bags)
		sections := make([]uint16, bags)
		for i := range names {
			names[i], sections[i] = fmt.Sprint("bag:", i), f.section(p)
			makeBag(t, f.owner, sections[i], names[i], 1+i%30, 100)
		}
		aside := make([]AsideKey, 20)
		for i := range aside {
			with(f.owner, p, 1, func(x Txn) {
				k, v, err := x.NewAside(bagType, bagOwn)
				if err != nil {
					t.Fatal(err)
				}
				f.set(x, v)
				aside[i] = k
			})
		}
		f.owner.Feed(p, testReceiver, Mark{Kind: 1})
		rename := func(x Txn, v Parts, at int) {
			name := fmt.Sprint("bag:", f.r.Uint64())
			if err := x.Select(DatabaseOf(sections[at])).Rename(v, []byte(name), 0); err != nil {
				t.Fatal(err)
			}
			names[at] = name
		}
		for cursor, done := uint64(0), false; !done; f.collect() {
			cursor, done = f.owner.Snapshot(p, testReceiver, cursor, 500, 1)
			for range 3 {
				at := f.r.IntN(bags)
				with(f.owner, sections[at], 1, func(x Txn) {
					v, ok := bag(x, names[at])
					if !ok {
						t.Fatalf("%s is not there", names[at])
					}
					sections[at] = f.section(p)
					rename(x, v, at)
				})
			}
			if n := len(aside); n > 0 && !done {
				with(f.owner, p, 1, func(x Txn) {
					v, _ := x.Aside(&aside[n-1])
					names, sections = append(names, ""), append(sections, f.section(p))
					rename(x, v, len(names)-1)
				})
				aside = aside[:n-1]
			}
		}
		for i, name := range names {
			f.compareBag(sections[i], name)
		}
		f.owner.checkSums(t)
		f.replica.checkSums(t)
	}
}

// compareBag compares a bag of the follower with that of the owner.
func (f *bagFeed) compareBag(section uint16, name string) {
	f.tb.Helper()
	content := func(e *Engine) (c map[uint32]string) {
		with(e, section, 1, func(x Txn) {
			if v, ok := bag(x, name); ok {
				c = bagContent(f.tb, v)
			}
		})
		return c
	}
	if want, got := content(f.owner), content(f.replica); want == nil || !maps.Equal(got, want) {
		f.tb.Fatalf("the follower has %d elements of %q in section %d, of %d", len(got), name, section, len(want))
	}
}

// TestFeedRenameOfMany: a snapshot cannot tell any more which values need not be noted when too
// many have been renamed. It ends, and begins anew; what it knew then it has forgotten.
func TestFeedRenameOfMany(t *testing.T) {
	oneGoroutine(t)
	const p, bags = 5, 100
	f := newBagFeed(t, 1)
	names := make([]string, bags)
	for i := range names {
		names[i] = fmt.Sprint("bag:", i)
		makeBag(t, f.owner, p, names[i], 1+i%30, 100)
	}
	rename := func(i int) {
		with(f.owner, p, 1, func(x Txn) {
			v, _ := bag(x, names[i])
			names[i] += "'"
			if err := x.Rename(v, []byte(names[i]), 0); err != nil {
				t.Fatal(err)
			}
		})
	}
	f.owner.Feed(p, testReceiver, Mark{})
	cursor, _ := f.owner.Snapshot(p, testReceiver, 0, 500, 1)
	sn := f.owner.feeds.receivers[testReceiver].Load().snapshots[p]
	if !sn.walks {
		t.Fatal("the snapshot has passed all values at once")
	}
	for i := uint32(0); sn.learn(math.MaxUint32 - i); i++ {
	}
	if len(sn.known) != maxKnown {
		t.Errorf("%d incarnations are known, want %d", len(sn.known), maxKnown)
	}
	var stopped []uint16
	for i := 0; i < bags && len(stopped) == 0; i++ {
		rename(i)
		stopped = f.owner.Overflowed(testReceiver, nil)
	}
	if len(stopped) != 1 || stopped[0] != p {
		t.Fatalf("the feeds of %v are stopped, want that of %d", stopped, p)
	}
	if next, done := f.owner.Snapshot(p, testReceiver, cursor, 500, 1); !done || next != WalkEnd {
		t.Error("the snapshot goes on")
	}
	f.collect()
	f.replica.Drop(p)
	f.owner.Feed(p, testReceiver, Mark{})
	for cursor, done := uint64(0), false; !done; f.collect() {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, 500, 1)
		rename(f.r.IntN(bags))
	}
	if stopped = f.owner.Overflowed(testReceiver, nil); len(stopped) > 0 {
		t.Errorf("the feeds of %v are stopped again", stopped)
	}
	for _, name := range names {
		f.compareBag(p, name)
	}
	if n := f.replica.Count(p); n != bags {
		t.Errorf("the follower has %d values, want %d", n, bags)
	}
	f.owner.checkSums(t)
	f.replica.checkSums(t)
}

// A part that is asked for by SizeOf is as long as the other one.
func TestSizeOf(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	makeBag(t, e, 1, "a", 1, 1)
	with(e, 1, 1, func(x Txn) {
		v, _ := bag(x, "a")
		for n := 1; n < 200_000; n += 1 + n/50 {
			if err := v.Reserve(n, 1); err != nil {
				t.Fatal(err)
			}
			number, part, err := v.Add(2, n)
			if err != nil {
				t.Fatal(err)
			}
			size := v.SizeOf(2, number)
			if err := v.Reserve(size); err != nil {
				t.Fatal(err)
			}
			if _, like, err := v.Add(2, size); err != nil || len(like) != len(part) {
				t.Fatalf("%v: a part of %d bytes is copied to one of %d", err, len(part), len(like))
			}
		}
		if v.SizeOf(3, 7) != 0 {
			t.Error("a part that is not there has a size")
		}
	})
}
