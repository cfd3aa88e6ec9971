package engine

import (
	"errors"
	"fmt"
	"testing"
)

// fillPartitions stores records of some 150 bytes, round robin in partitions from first to last,
// until the engine is full to a part of its limit in percent. It returns how many.
func fillPartitions(tb testing.TB, e *Engine, first, last uint16, percent int64) (keys int) {
	for e.Used() < e.MaxBytes()/100*percent {
		mustSet(tb, e, first+uint16(keys)%(last-first), fmt.Sprint("key:", keys), make([]byte, 100+keys%50))
		keys++
	}
	return keys
}

// useSome notes uses of the records of fillPartitions.
func useSome(e *Engine, first, last uint16, keys int, uses func(i int) int) {
	for i := range keys {
		with(e, first+uint16(i)%(last-first), 0, func(x Txn) { x.SetUses(fmt.Append(nil, "key:", i), uses(i)) })
	}
}

func countPartitions(e *Engine, first, last uint16) (keys int) {
	for p := first; p < last; p++ {
		keys += e.Count(p)
	}
	return keys
}

// As long as copies have records, nothing else is evicted, whatever needs memory.
func TestCopiesGoFirst(t *testing.T) {
	oneGoroutine(t)
	const own, copies = 0, 128 // partitions from there on
	run := func(name string, cfg Config, need func(e *Engine, i int)) {
		t.Run(name, func(t *testing.T) {
			e := open(t, cfg)
			for p := uint16(copies); p < 2*copies; p++ {
				e.SetCopy(p, SpareCopy)
			}
			stored := fillPartitions(t, e, own, copies, 45)
			copied := fillPartitions(t, e, copies, 2*copies, 90)
			useSome(e, copies, 2*copies, copied, func(i int) int { return i / copies % 4 }) // and they go nevertheless
			for i := 0; ; i++ {
				if need(e, i); i%20 != 0 {
					continue
				}
				left := countPartitions(e, copies, 2*copies)
				if left < 20*len(e.shards) {
					break // the last of a shard may not do
				}
				if i == 1<<20 {
					t.Fatalf("%d records of copies are still there", left)
				}
				if i%500 == 0 || left < 500 {
					if n := countPartitions(e, own, copies); n < stored {
						t.Fatalf("%d of %d own records are left, and %d of copies", n, stored, left)
					}
				}
			}
			e.checkSums(t)
		})
	}
	small := func(e *Engine, i int) {
		with(e, uint16(300+i%128), 0, func(x Txn) {
			if err := x.Set(fmt.Append(nil, "new:", i), make([]byte, 20+i%300), TypeString, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
	run("set", Config{MaxBytes: 16 << 20, Shards: 4}, small)
	run("large", Config{MaxBytes: 16 << 20, Shards: 4}, func(e *Engine, i int) {
		mustSet(t, e, uint16(300+i%128), fmt.Sprint("new:", i), make([]byte, 30_000))
	})
	if testing.Short() {
		return
	}
	run("set, one shard", Config{MaxBytes: 8 << 20, Shards: 1}, small)
	run("set, volatile", Config{MaxBytes: 16 << 20, Shards: 4, Policy: VolatileTTL}, small)
	run("set, no eviction", Config{MaxBytes: 16 << 20, Shards: 4, Policy: NoEviction}, small)
	run("charge", Config{MaxBytes: 16 << 20, Shards: 4}, func(e *Engine, _ int) {
		if !e.Charge(5000) {
			t.Fatal("no memory")
		}
		t.Cleanup(func() { e.Refund(5000) })
	})
	run("limit", Config{MaxBytes: 16 << 20, Shards: 4}, func(e *Engine, _ int) {
		if err := e.SetMaxBytes(e.MaxBytes() - 10_000); err != nil {
			t.Fatal(err)
		}
	})
}

// Of copies those records go first that were not used, and those that were used follow in time.
func TestUsedCopiesStay(t *testing.T) {
	oneGoroutine(t)
	const first, last, own = 128, 256, 0
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 4})
	for p := uint16(first); p < last; p++ {
		e.SetCopy(p, SpareCopy)
	}
	copied := fillPartitions(t, e, first, last, 90)
	isUsed := func(i int) bool { return i/(last-first)%4 == 0 } // a quarter of each partition
	left := func() (used, unused int) {
		for i := range copied {
			with(e, first+uint16(i)%(last-first), 0, func(x Txn) {
				if _, ok := x.Peek(fmt.Append(nil, "key:", i)); ok && isUsed(i) {
					used++
				} else if ok {
					unused++
				}
			})
		}
		return used, unused
	}
	useSome(e, first, last, copied, func(i int) int {
		if isUsed(i) {
			return 3
		}
		return 0
	})
	write := func(until int) (used, unused int) {
		for i := 0; ; i++ {
			mustSet(t, e, own+uint16(i%64), fmt.Sprint("own:", i, until), make([]byte, 100+i%50))
			if i%100 == 0 && countPartitions(e, first, last) < until {
				return left()
			}
		}
	}
	used, unused := write(copied / 2)
	t.Logf("of %d records %d used and %d unused ones are left", copied, used, unused)
	if wanted := copied / 4; used < wanted*95/100 {
		t.Errorf("%d of %d used records are left, and %d unused ones", used, wanted, unused)
	}
	if used, unused = write(copied / 16); used == 0 {
		t.Errorf("no used record is left, and %d unused ones", unused)
	}
	e.checkSums(t)
}

// What is written to a copy never costs a record of an own partition: it is not stored.
func TestCopiesTakeNoMemory(t *testing.T) {
	oneGoroutine(t)
	owner := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 4})
	stored := fillPartitions(t, e, 0, 64, 90)
	owner.OpenFeed(0, func() {})
	for p := uint16(64); p < 96; p++ {
		owner.Feed(p, 0, Mark{})
		e.SetCopy(p, SpareCopy)
	}
	copied := fillPartitions(t, owner, 64, 96, 20)
	follow(t, owner, e, 0, 0, 0, &takesAll{})
	mustSet(t, owner, 64, "large", make([]byte, 300_000))
	follow(t, owner, e, 0, 0, 0, &takesAll{})
	if n := countPartitions(e, 64, 96); n == 0 || n >= copied {
		t.Errorf("%d of %d records are copied", n, copied)
	}
	stageCopies(t, e)
	if n := countPartitions(e, 0, 64); n != stored {
		t.Errorf("%d of %d own records are left", n, stored)
	}
	// As an own partition it gets memory.
	for p := uint16(64); p < 96; p++ {
		e.SetCopy(p, NoCopy)
	}
	fillPartitions(t, e, 64, 96, 99)
	for i := range 20_000 {
		mustSet(t, e, 64+uint16(i%32), fmt.Sprint("own:", i), make([]byte, 100))
	}
	if n := countPartitions(e, 0, 64); n == stored {
		t.Error("nothing was evicted for what was a copy")
	}
	e.checkSums(t)
}

// stageCopies stages large values for copies until there is no memory.
func stageCopies(t *testing.T, e *Engine) {
	for i := 0; ; i++ {
		st, err := e.StageFor(64, fmt.Append(nil, i), 300_000)
		if err == nil {
			if err = st.Write(make([]byte, 300_000)); err != nil {
				st.Discard()
			}
		}
		if errors.Is(err, ErrMemory) {
			return
		}
		if err != nil || i == 100 {
			t.Fatalf("after %d large values: %v", i, err)
		}
		t.Cleanup(st.Discard)
	}
}

// Copies end with their partition or with a Reset, and come again.
func TestCopiesComeAgain(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 4 << 20, Shards: 1})
	e.SetCopy(5, SpareCopy)
	for round := range 3 {
		stored := fillPartitions(t, e, 0, 4, 40)
		fillPartitions(t, e, 5, 6, 90)
		for i := 0; e.Count(5) > 50; i++ {
			mustSet(t, e, 7, fmt.Sprint(i), make([]byte, 1000))
		}
		if n := countPartitions(e, 0, 4); n != stored {
			t.Errorf("round %d: %d of %d own records are left", round, n, stored)
		}
		if round == 0 {
			e.Drop(5)
			e.Drop(7)
			for p := range uint16(4) {
				e.Drop(p)
			}
		} else {
			e.Reset(uint64(round))
		}
	}
}

// What is forgotten is gone at once, and its memory is there for others before anything is evicted,
// or after some sweeps.
func TestForget(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 4})
	stored := fillPartitions(t, e, 0, 32, 45)
	fillPartitions(t, e, 32, 64, 90)
	for p := uint16(32); p < 64; p++ {
		if e.Forget(p); e.Count(p) != 0 {
			t.Fatalf("%d keys are left", e.Count(p))
		}
	}
	if used := e.Used(); used < e.MaxBytes()/10*8 {
		t.Errorf("%d bytes are used already", used)
	}
	for i := 0; e.haveSpare(doomedRecords) && i < 1e5; i++ {
		mustSet(t, e, uint16(64+i%32), fmt.Sprint(i), make([]byte, 100+i%50))
	}
	if n := countPartitions(e, 0, 32); n < stored-stored/50 { // what needed memory as the last of it was freed
		t.Errorf("%d of %d records are left", n, stored)
	}
	e.checkSums(t)
	for p := uint16(0); p < 96; p++ {
		e.Forget(p)
	}
	for i := 0; e.haveSpare(doomedRecords); i++ {
		if i == 1000 {
			t.Fatal("the sweep does not free what is forgotten")
		}
		e.Sweep(0, 1)
	}
	if st := e.Stats(); st.Values != 0 {
		t.Errorf("%+v", st)
	}
	e.checkSums(t)
}
