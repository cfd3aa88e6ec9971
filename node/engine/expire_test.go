package engine

import (
	"fmt"
	"testing"
)

func TestExpiry(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	found := func(now int64, want bool, wantAt int64) {
		t.Helper()
		with(e, 1, now, func(x Txn) {
			item, ok := x.Find([]byte("k"))
			if ok != want || ok && (item.ExpireAt() != wantAt || string(item.Value()) != "value") {
				t.Errorf("at %d: found %t expiring at %d, want %t, %d", now, ok, item.expireAt, want, wantAt)
			}
		})
	}
	set := func(at int64) {
		with(e, 1, 0, func(x Txn) {
			if err := x.Set([]byte("k"), []byte("value"), TypeString, at); err != nil {
				t.Error(err)
			}
		})
	}
	setExpire := func(now, at int64, want bool) {
		t.Helper()
		with(e, 1, now, func(x Txn) {
			if got := x.SetExpire([]byte("k"), at); got != want {
				t.Errorf("SetExpire to %d at %d: %t", at, now, got)
			}
		})
	}
	set(100)
	found(99, true, 100)
	found(100, false, 0)
	if st := e.Stats(); st.Expired != 1 || st.Keys != 0 || st.Volatile != 0 {
		t.Errorf("%+v", st)
	}
	setExpire(0, 50, false)
	set(0)
	found(1<<50, true, 0)
	setExpire(0, 0, true)
	setExpire(0, 200, true)
	found(199, true, 200)
	setExpire(199, 0, true)
	found(1000, true, 0)
	setExpire(1000, 2000, true)
	setExpire(2000, 3000, false)
	set(100)
	set(0)
	found(100, true, 0)
	set(100)
	with(e, 1, 100, func(x Txn) {
		if x.Delete([]byte("k")) {
			t.Error("an expired key was deleted")
		}
	})
	if st := e.Stats(); st.Keys != 0 || st.Volatile != 0 || st.Values != 0 {
		t.Errorf("%+v", st)
	}
}

func TestSweep(t *testing.T) {
	const keys = 20_000
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 16})
	for i := range keys {
		with(e, uint16(i%Partitions), 0, func(x Txn) {
			if err := x.Set([]byte(fmt.Sprint(i)), []byte("v"), TypeString, int64(i%2)*1000); err != nil {
				t.Fatal(err)
			}
		})
	}
	if n := e.Sweep(999, e.Pages()); n != 0 {
		t.Fatalf("%d keys expired too early", n)
	}
	swept := 0
	for pages := e.Pages(); pages > 0; pages-- { // one round, page by page
		n := e.Sweep(1000, 1)
		if n > e.pool.pageSize/24 {
			t.Fatalf("%d keys were removed of one page", n)
		}
		swept += n
	}
	if st := e.Stats(); swept != keys/2 || st.Keys != keys/2 || st.Volatile != 0 || st.Expired != keys/2 {
		t.Errorf("swept %d: %+v", swept, st)
	}
	e.checkSums(t)
}

// TestSweepRoundWhilePagesCome: a round of the sweep looks at every page, though new ones are used all the time, in a
// window before those of the others, and many rounds have been before.
func TestSweepRoundWhilePagesCome(t *testing.T) {
	oneGoroutine(t)
	const keys, rounds = 20_000, 50
	e := open(t, Config{MaxBytes: 32 << 20, Shards: 8, windowReach: 256 << 20})
	for i := range keys {
		with(e, uint16(i%Partitions), 0, func(x Txn) {
			if err := x.Set([]byte(fmt.Sprint(i)), make([]byte, 100), TypeString, 1000); err != nil {
				t.Fatal(err)
			}
		})
	}
	for range rounds {
		e.Sweep(999, e.Pages())
	}
	begin, added := e.Pages(), 0
	for step := 0; step < e.Pages(); step++ {
		if step%2 == 0 && e.Pages() < 2*begin {
			for had := e.Pages(); e.Pages() == had; added++ {
				mustSet(t, e, 0, fmt.Sprint("new", added), make([]byte, 1000))
			}
		}
		e.Sweep(1000, 1)
	}
	if st := e.Stats(); st.Expired != keys {
		t.Errorf("a round of %d pages, %d at its begin, removed %d keys, want %d", e.Pages(), begin, st.Expired, keys)
	}
}

// duePages is how many pages a round looks at.
func (e *Engine) duePages(now int64) (n int) {
	for pg := 1; pg <= e.Pages(); pg++ {
		if e.pool.pages[pg].soonest.Load() <= now {
			n++
		}
	}
	return n
}

// TestSweepPassesPages: a page is looked at when something on it may be due, and not again before
// its time.
func TestSweepPassesPages(t *testing.T) {
	const keys = 5000
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
	set := func(i int, at int64) {
		with(e, uint16(i%Partitions), 0, func(x Txn) {
			if err := x.Set([]byte(fmt.Sprint(i)), make([]byte, 100), TypeString, at); err != nil {
				t.Fatal(err)
			}
		})
	}
	due := func(now int64, want int) {
		t.Helper()
		if got := e.duePages(now); got != want {
			t.Errorf("%d pages are due at %d of %d, want %d", got, now, e.Pages(), want)
		}
	}
	for i := range keys {
		set(i, 0)
	}
	due(never-1, 0)
	set(0, 1000)
	due(999, 0)
	due(1000, 1)
	with(e, 0, 0, func(x Txn) { x.SetExpire([]byte("0"), 2000) })
	due(1999, 1) // the page does not know yet
	if n := e.Sweep(1000, e.Pages()); n != 0 {
		t.Errorf("%d keys expired", n)
	}
	due(1999, 0)
	due(2000, 1)
	if n := e.Sweep(2000, e.Pages()); n != 1 {
		t.Errorf("%d keys expired", n)
	}
	due(never-1, 0)
}

// TestSweepInSlices changes a page between two slices of its sweep: what comes to it is not
// forgotten, and when it has become another page, of another kind even, that one is left alone.
func TestSweepInSlices(t *testing.T) {
	const keys = 500
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
	set := func(i int, at int64) {
		with(e, 0, 0, func(x Txn) {
			if err := x.Set([]byte(fmt.Sprint(i)), nil, TypeString, at); err != nil {
				t.Fatal(err)
			}
		})
	}
	s := &e.shards[0]
	begin := func() (*pageSweep, *page) {
		for i := range keys {
			set(i, 1000)
		}
		en := s.indexes.lookup(s.partition(0), tagOf(s.seed.Load(), []byte("0")), []byte("0"))
		w := &pageSweep{at: hand{page: s.cells.pageOf(en.ref())}, now: 1000}
		if n, more := s.sweepSlice(w); n != expireAtOnce || !more {
			t.Fatalf("the first slice removed %d, more: %t", n, more)
		}
		return w, &e.pool.pages[w.at.page]
	}
	w, p := begin()
	for i := range keys {
		set(i, 1500) // in cells freed by the first slice, and in place
	}
	if n, _ := s.sweepSlice(w); n != 0 || p.soonest.Load() != 1500 {
		t.Errorf("%d were removed, the page's time is %d", n, p.soonest.Load())
	}
	e.checkSums(t)

	w, p = begin()
	e.Drop(0)
	e.Reset(1)
	if n, more := s.sweepSlice(w); n != 0 || more {
		t.Errorf("%d were removed of a page that is nobody's, more: %t", n, more)
	}
	pg := e.pool.take(0, false, false, 0)
	for ; pg != w.at.page; pg = e.pool.take(0, false, false, 0) {
	}
	s.small.join(pg)
	if n, more := s.sweepSlice(w); n != 0 || more || p.kind != smallLog {
		t.Errorf("%d were removed of another page, more: %t", n, more)
	}
}

// TestSweepShrinksIndexes empties partitions by expiry, where no deletion helps the indexes to
// shrink.
func TestSweepShrinksIndexes(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	for i := range 100_000 {
		with(e, uint16(i%16), 0, func(x Txn) {
			if err := x.Set([]byte(fmt.Sprint(i)), nil, TypeString, 1); err != nil {
				t.Fatal(err)
			}
		})
	}
	before := e.Stats().Index
	e.Sweep(2, e.Pages())
	if st := e.Stats(); st.Keys != 0 || st.Index > before/1000 {
		t.Errorf("of %d bytes of indexes %d are left: %+v", before, st.Index, st)
	}
	e.checkSums(t)
}
