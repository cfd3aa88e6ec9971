package engine

import (
	"testing"
)

const (
	unfinishedPartition = 5
	unfinishedElements  = 1000
	// unfinishedBytes makes the elements several chunks of a snapshot.
	unfinishedBytes = 200
)

// half feeds the first chunks of the snapshot of a big bag to the replica, and returns the
// snapshot's cursor.
func (f *bagFeed) half(key string) (cursor uint64) {
	f.tb.Helper()
	const p = unfinishedPartition
	f.owner.Feed(p, testReceiver, Mark{Kind: 1})
	cursor, done := f.owner.Snapshot(p, testReceiver, 0, 2*chunkSize, 1)
	if done {
		f.tb.Fatal("the snapshot ended with its first chunks")
	}
	f.collect()
	if f.replica.Stats().Parts == 0 {
		f.tb.Fatalf("nothing of %s has arrived", key)
	}
	return cursor
}

func newHalf(t *testing.T) (f *bagFeed, cursor uint64) {
	f = newBagFeed(t, 11)
	makeBag(t, f.owner, unfinishedPartition, "bag:1", unfinishedElements, unfinishedBytes)
	return f, f.half("bag:1")
}

// wantAbsent checks that no command of the replica sees the key.
func (f *bagFeed) wantAbsent(key string) {
	f.tb.Helper()
	const p = unfinishedPartition
	with(f.replica, p, 1, func(t Txn) {
		if _, found := t.Find([]byte(key)); found {
			f.tb.Error("Find finds an unfinished value")
		}
		if _, found := t.Peek([]byte(key)); found {
			f.tb.Error("Peek finds an unfinished value")
		}
		if t.SetExpire([]byte(key), 1000) || t.VersionOf([]byte(key)).Found {
			f.tb.Error("an unfinished value can expire, or has a version")
		}
		if _, err := t.Resize([]byte(key), 10); err != ErrNotFound {
			f.tb.Errorf("Resize of an unfinished value: %v", err)
		}
	})
	f.replica.checkCounts(f.tb)
	if _, done := f.replica.Walk(p, 0, 1000, 1, func(item Item) bool {
		f.tb.Errorf("Walk visits %q", item.Key())
		return true
	}); !done {
		f.tb.Error("a walk over no items does not end")
	}
	if n, keys := f.replica.Count(p), f.replica.Stats().Keys; n != 0 || keys != 0 {
		f.tb.Errorf("%d keys in the partition, %d in all, want none", n, keys)
	}
}

// wantFreed checks that the memory of all values with parts comes back.
func (f *bagFeed) wantFreed() {
	f.tb.Helper()
	for range 100 {
		f.replica.Sweep(1, f.replica.Pages())
	}
	if st := f.replica.Stats(); st.Parts != 0 || st.Values != 0 {
		f.tb.Errorf("%d bytes of parts and %d of records are left", st.Parts, st.Values)
	}
	f.replica.checkSums(f.tb)
}

// A receiver that takes over in the middle of a value's snapshot does not serve half of it: begin,
// some of the deltas, then the partition becomes its own.
func TestUnfinishedIsNotServed(t *testing.T) {
	for name, stop := range map[string]func(e *Engine){
		"SetCopy":        func(e *Engine) { e.SetCopy(unfinishedPartition, NoCopy) },
		"DropUnfinished": func(e *Engine) { e.DropUnfinished(unfinishedPartition) },
		"Forget":         func(e *Engine) { e.Forget(unfinishedPartition) },
		"Drop":           func(e *Engine) { e.Drop(unfinishedPartition) },
		"Reset":          func(e *Engine) { e.Reset(1) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newBagFeed(t, 11)
			f.replica.SetCopy(unfinishedPartition, SpareCopy)
			makeBag(t, f.owner, unfinishedPartition, "bag:1", unfinishedElements, unfinishedBytes)
			f.half("bag:1")
			f.wantAbsent("bag:1")
			stop(f.replica)
			f.wantAbsent("bag:1")
			f.wantFreed()
		})
	}
}

// The end of its snapshot makes the value whole, and changes in between are in it.
func TestUnfinishedBecomesWhole(t *testing.T) {
	f, cursor := newHalf(t)
	const p = unfinishedPartition
	with(f.owner, p, 1, func(x Txn) {
		v, _ := bag(x, "bag:1")
		bagDelete(v, 3)
		x.SetExpire([]byte("bag:1"), 5000)
	})
	f.collect()
	f.wantAbsent("bag:1")
	for done := false; !done; {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, chunkSize, 1)
		f.collect()
	}
	f.compare(p)
	if n := f.replica.Count(p); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
	f.replica.DropUnfinished(p)
	f.compare(p)
	f.replica.checkSums(t)
}

// What is stored under the key of an unfinished value takes its place; and to delete it deletes no
// key.
func TestUnfinishedGivesWay(t *testing.T) {
	const p = unfinishedPartition
	f, _ := newHalf(t)
	with(f.replica, p, 1, func(x Txn) {
		if err := x.Set([]byte("bag:1"), []byte("new"), TypeString, 0); err != nil {
			t.Fatal(err)
		}
		if item, found := x.Peek([]byte("bag:1")); !found || string(item.Value()) != "new" {
			t.Error("the new value is not there")
		}
		x.Delete([]byte("bag:1"))
	})
	f.wantFreed()

	f, _ = newHalf(t)
	with(f.replica, p, 1, func(x Txn) {
		if x.Delete([]byte("bag:1")) {
			t.Error("Delete says that an unfinished value was there")
		}
	})
	f.wantFreed()
}

// A sender that goes on although the receiver has dropped what it had learns that the key is
// lacking, and what it sends then is whole.
func TestUnfinishedIsSentAnew(t *testing.T) {
	const p = unfinishedPartition
	f, cursor := newHalf(t)
	f.replica.DropUnfinished(p)
	for done := false; !done; {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, chunkSize, 1)
		f.collect()
	}
	f.wantAbsent("bag:1")
	if !f.taker.lacks["bag:1"] {
		t.Error("the receiver does not say that it lacks the key")
	}
	var effects []byte
	with(f.owner, p, 1, func(x Txn) { effects = x.AppendEffect(nil, []byte("bag:1")) })
	if err := f.replica.Apply(effects, 0, 1, &f.taker); err != nil {
		t.Fatal(err)
	}
	f.compare(p)
	f.replica.checkSums(t)
}

// A receiver that is fed by a receiver has the value whole when both have.
func TestUnfinishedThroughAnother(t *testing.T) {
	const p = unfinishedPartition
	f, cursor := newHalf(t)
	last := &bagFeed{tb: t, owner: f.replica, replica: open(t, Config{MaxBytes: 64 << 20, Shards: 2, Forms: bags()}), taker: bagTaker{lacks: map[string]bool{}}}
	last.owner.OpenFeed(testReceiver, func() {})
	last.owner.Feed(p, testReceiver, Mark{})
	for at, done := uint64(0), false; !done; {
		at, done = last.owner.Snapshot(p, testReceiver, at, chunkSize, 1)
		last.collect()
	}
	last.wantAbsent("bag:1")
	for done := false; !done; {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, chunkSize, 1)
		f.collect()
		last.collect()
	}
	f.compare(p)
	last.compare(p)
	if n := len(last.taker.lacks); n != 0 {
		t.Errorf("the last receiver lacked %d keys", n)
	}
}

// A value that becomes whole at a receiver while that feeds it on is not whole at the next one
// before the next one has all of it.
func TestUnfinishedUntilAllIsThere(t *testing.T) {
	const p = unfinishedPartition
	f, cursor := newHalf(t)
	last := &bagFeed{tb: t, owner: f.replica, replica: open(t, Config{MaxBytes: 64 << 20, Shards: 2, Forms: bags()}), taker: bagTaker{lacks: map[string]bool{}}}
	last.owner.OpenFeed(testReceiver, func() {})
	last.owner.Feed(p, testReceiver, Mark{})
	at, ended := last.owner.Snapshot(p, testReceiver, 0, 1000, 1)
	if ended {
		t.Fatal("the second snapshot ended with its first chunk")
	}
	for done := false; !done; {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, chunkSize, 1)
		f.collect()
		last.collect()
	}
	f.compare(p)
	last.wantAbsent("bag:1")
	for done := false; !done; {
		at, done = last.owner.Snapshot(p, testReceiver, at, chunkSize, 1)
		last.collect()
	}
	last.compare(p)
}

// A value that gets another key while its snapshot is on its way is not whole before the snapshot has
// ended, and then it is.
func TestUnfinishedIsRenamed(t *testing.T) {
	const p = unfinishedPartition
	f, cursor := newHalf(t)
	with(f.owner, p, 1, func(x Txn) {
		v, _ := bag(x, "bag:1")
		if err := x.Rename(v, []byte("bag:2"), 0); err != nil {
			t.Fatal(err)
		}
	})
	f.collect()
	f.wantAbsent("bag:2")
	for done := false; !done; {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, chunkSize, 1)
		f.collect()
	}
	f.compare(p)
	if n := f.replica.Count(p); n != 1 || len(f.taker.lacks) > 0 {
		t.Errorf("%d keys, want 1; the receiver lacks %v", n, f.taker.lacks)
	}
}

// A value that takes the place of one whose snapshot is on its way is sent by itself: the snapshot does
// not go on in it.
func TestUnfinishedIsReplaced(t *testing.T) {
	const p = unfinishedPartition
	f, cursor := newHalf(t)
	with(f.owner, p, 1, func(x Txn) {
		x.Delete([]byte("bag:1"))
		v := mustBag(t, x, "bag:1")
		var err error
		for id := uint32(0); id < unfinishedElements && err == nil; id++ {
			if err = bagReserve(v, unfinishedBytes); err == nil {
				err = bagSet(v, id, make([]byte, unfinishedBytes))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	f.collect()
	f.compare(p)
	for done := false; !done; {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, chunkSize, 1)
		f.collect()
	}
	f.compare(p)
	if len(f.taker.lacks) > 0 {
		t.Errorf("the receiver lacks %v", f.taker.lacks)
	}
}
