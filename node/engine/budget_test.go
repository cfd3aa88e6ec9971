package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fillUp sets keys of a few hundred bytes until about twice the limit went in, or one is refused.
// Every third key expires, far away.
func fillUp(e *Engine) { fillWith(e, 300) }

// fillWith is fillUp with values of a size.
func fillWith(e *Engine, size int) {
	value := make([]byte, size)
	var err error
	for i := 0; i < int(2*e.Stats().Max)/(size+100) && err == nil; i++ {
		with(e, uint16(i%Partitions), 0, func(t Txn) {
			expireAt := int64(0)
			if i%3 == 0 {
				expireAt = 1 << 40
			}
			err = t.Set(fmt.Append(nil, i), value, TypeString, expireAt)
		})
	}
}

// chargeAll takes steps of 64 KiB until n bytes are charged or it is refused.
func chargeAll(e *Engine, n int64) (charged int64) {
	const step = 64 << 10
	for charged < n && e.Charge(step) {
		charged += step
	}
	return charged
}

func TestChargeMakesRoom(t *testing.T) {
	oneGoroutine(t)
	const limit, want = testMin, 4 << 20
	e := open(t, Config{MaxBytes: limit, Shards: 4})
	fillUp(e)
	before := e.Stats()
	if got := chargeAll(e, want); got != want {
		t.Fatalf("%d bytes could be charged, want %d", got, want)
	}
	st := e.Stats()
	if st.Outside != want || st.Used > limit || st.Used != st.Values+st.Index+st.Ghosts+st.Fixed+st.Slack+st.Outside {
		t.Errorf("after charging: %+v", st)
	}
	if st.Keys > before.Keys*6/10 || st.Evicted == before.Evicted {
		t.Errorf("%d keys are left of %d", st.Keys, before.Keys)
	}
	fillUp(e)
	if st = e.Stats(); st.Used > limit || st.Outside != want {
		t.Errorf("after more values: %+v", st)
	}
	e.checkSums(t)

	e.Refund(want)
	fillUp(e)
	if st = e.Stats(); st.Outside != 0 || st.Keys < before.Keys*9/10 {
		t.Errorf("after the refund: %+v, before all: %+v", st, before)
	}
	e.checkSums(t)
}

func TestChargeByPolicy(t *testing.T) {
	oneGoroutine(t)
	f := func(policy Policy, wantCharged bool, wantPersistent string) {
		t.Helper()
		e := open(t, Config{MaxBytes: testMin, Shards: 4})
		e.SetPolicy(NoEviction)
		fillUp(e)
		e.SetPolicy(policy)
		if got := e.Policy(); got != policy {
			t.Errorf("policy %d was set, is %d", policy, got)
		}
		before := e.Stats()
		if charged := chargeAll(e, 1<<20) == 1<<20; charged != wantCharged {
			t.Errorf("policy %d: charged %v", policy, charged)
		}
		st := e.Stats()
		persistent := "stay"
		if st.Keys-st.Volatile < before.Keys-before.Volatile {
			persistent = "go"
		}
		if persistent != wantPersistent || st.Used > st.Max {
			t.Errorf("policy %d: keys without expiry %s, want %s: %+v, was %+v", policy, persistent, wantPersistent, st, before)
		}
		e.checkSums(t)
	}
	f(AllKeys, true, "go")
	f(VolatileTTL, true, "stay")
	f(NoEviction, false, "stay")
}

// TestExpireWhenFull: a first expiry takes eight bytes more, which must be there when no value can
// be stored.
func TestExpireWhenFull(t *testing.T) {
	oneGoroutine(t)
	for _, policy := range []Policy{NoEviction, VolatileTTL} {
		e := open(t, Config{MaxBytes: testMin, Shards: 4, Policy: policy})
		stored := 0
		for ; stored < 1e6; stored++ {
			var err error
			with(e, uint16(stored%Partitions), 0, func(t Txn) { err = t.Set(fmt.Append(nil, stored), make([]byte, 100), TypeString, 0) })
			if err != nil {
				break
			}
		}
		for i := range 1000 {
			with(e, uint16(i%Partitions), 0, func(txn Txn) {
				if !txn.SetExpire(fmt.Append(nil, i), 1<<40) {
					t.Fatalf("policy %d: expiry %d of %d keys finds no memory", policy, i, stored)
				}
			})
		}
		if st := e.Stats(); st.Volatile != 1000 || st.Keys != int64(stored) || st.Used > st.Max {
			t.Errorf("policy %d: %+v, want %d keys", policy, st, stored)
		}
		e.checkSums(t)
	}
}

// TestExpireBesideALaggingFeed: the logs of a receiver that takes nothing leave memory for first
// expiries.
func TestExpireBesideALaggingFeed(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 32 << 20, Shards: 4, Policy: NoEviction})
	e.OpenFeed(testReceiver, func() {})
	for p := range uint16(Partitions) {
		e.Feed(p, testReceiver, Mark{})
	}
	set := func(i int) (err error) {
		with(e, uint16(i%Partitions), 0, func(x Txn) { err = x.Set(fmt.Append(nil, i), make([]byte, 100), TypeString, 0) })
		return err
	}
	stored := 0
	for ; stored < 1e6 && set(stored) == nil; stored++ {
		for i := range e.Shards() {
			for more := stored%100 == 0; more; {
				_, more = e.Collect(testReceiver, i, nil, 1<<16)
			}
		}
	}
	e.LostLog(testReceiver)
	for i := 0; !e.LostLog(testReceiver); i++ {
		if i == 1e6 {
			t.Fatal("the logs never end")
		}
		if err := set(i % stored); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		with(e, uint16(i%Partitions), 0, func(x Txn) {
			if !x.SetExpire(fmt.Append(nil, i), 1<<40) {
				t.Fatalf("expiry %d of %d keys finds no memory", i, stored)
			}
		})
	}
	e.checkSums(t)
}

// TestChargeLeavesAnItemAlone: a reply is being made of an item while its buffer is charged.
func TestChargeLeavesAnItemAlone(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	fillUp(e)
	mustSet(t, e, 5, "held", []byte("value"))
	with(e, 5, 0, func(txn Txn) {
		item, _ := txn.Find([]byte("held"))
		if chargeAll(e, 4<<20) != 4<<20 {
			t.Error("nothing could be charged beside a lock")
		}
		if string(item.Key()) != "held" || string(item.Value()) != "value" {
			t.Errorf("the item became %q = %q", item.Key(), item.Value())
		}
	})
}

func TestChargeTooMuch(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	fillUp(e)
	before := e.Stats()
	if e.Charge(testMin) {
		t.Error("the whole limit was charged")
	}
	if st := e.Stats(); st != before {
		t.Errorf("for what can never fit, %+v became %+v", before, st)
	}
}

// TestChargeBesideResets lets writers, chargers and resets run at once: nothing may be counted
// twice or not at all.
func TestChargeBesideResets(t *testing.T) {
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 8})
	var wg sync.WaitGroup
	for u := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(u)))
			value := make([]byte, 2000)
			held := int64(0)
			for i := range 4000 {
				switch n := int64(r.IntN(100_000)); {
				case i%1000 == 999:
					e.Reset(uint64(i))
				case i%3 > 0:
					with(e, uint16(r.IntN(Partitions)), 0, func(t Txn) {
						_ = t.Set(fmt.Append(nil, r.IntN(5000)), value, TypeString, 0)
					})
				case held > 1<<20:
					e.Refund(held)
					held = 0
				case e.Charge(n):
					held += n
				}
				if e.Used() > 8<<20 {
					t.Errorf("%d bytes are used", e.Used())
				}
			}
			e.Refund(held)
		})
	}
	wg.Wait()
	if st := e.Stats(); st.Outside != 0 {
		t.Errorf("all is refunded: %+v", st)
	}
	e.checkSums(t)
}

// TestOutsideFromTheStart: the smallest limit that New names holds beside memory of the caller's
// own.
func TestOutsideFromTheStart(t *testing.T) {
	oneGoroutine(t)
	const outside = 10 << 20
	_, err := New(Config{MaxBytes: 1 << 20, Shards: 16, Outside: outside})
	if want := "the smallest is 13mb"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an engine in 1 MiB: %v, want %q", err, want)
	}
	e := open(t, Config{MaxBytes: 13 << 20, Shards: 16, Outside: outside})
	for p := range uint16(Partitions) {
		mustSet(t, e, p, "key", []byte("value"))
	}
	e.Reset(1)
	fillUp(e)
	if st := e.Stats(); st.Outside != outside || st.Used > 13<<20 {
		t.Errorf("%+v", st)
	}
	e.checkSums(t)
}

// Who writes while the limit drops finds memory, although nearly all of it is in one shard, which is
// locked.
func TestShrinkBesideWriters(t *testing.T) {
	const before, after, keys = 64 << 20, 16 << 20, 200
	e := open(t, Config{MaxBytes: before, Shards: 4, Forms: bags()})
	makeBag(t, e, 0, "bag", 12_000, 4_000)
	done := make(chan error)
	with(e, 0, 1, func(Txn) {
		go func() { done <- e.SetMaxBytes(after) }()
		for e.MaxBytes() == before {
			runtime.Gosched()
		}
		refused := make(chan int)
		go func() {
			n := 0
			for i := range keys {
				with(e, 1, 1, func(x Txn) {
					if x.Set(fmt.Append(nil, i), make([]byte, 1000), TypeString, 0) != nil {
						n++
					}
				})
			}
			refused <- n
		}()
		if n := <-refused; n > 0 {
			t.Errorf("%d of %d keys are refused", n, keys)
		}
	})
	if err := <-done; err != nil || e.Used() > after {
		t.Errorf("%d bytes are used: %v", e.Used(), err)
	}
}

// TestMemoryOfTheDeadIsFound: the collector gives a dead value's memory back while others look for some. They
// find it, whichever of them has the last piece.
func TestMemoryOfTheDeadIsFound(t *testing.T) {
	const size, rounds = 512 << 10, 500
	for name, take := range map[string]func(e *Engine) (ok bool, giveBack func()){
		"charge": func(e *Engine) (bool, func()) { return e.Charge(size), func() { e.Refund(size) } },
		"value": func(e *Engine) (ok bool, giveBack func()) {
			with(e, 5, 0, func(txn Txn) { ok = txn.Set([]byte("other"), make([]byte, size), TypeString, 0) == nil })
			return ok, func() { with(e, 5, 0, func(txn Txn) { txn.Delete([]byte("other")) }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, Config{MaxBytes: testMin, Shards: 1, Policy: NoEviction})
			st := e.Stats()
			if !e.Charge(st.Max - e.pool.reserved.Load() - st.Used - 7*size/4) { // there is room for one of two values
				t.Fatal("cannot take most of the memory")
			}
			value, refused := make([]byte, size), 0
			for range rounds {
				mustSet(t, e, 1, "dead", value)
				with(e, 1, 0, func(txn Txn) { txn.Delete([]byte("dead")) })
				ok, giveBack := take(e)
				if ok {
					giveBack()
				} else {
					refused++
				}
				e.large.settle()
			}
			if refused > 0 {
				t.Errorf("%d of %d found no memory", refused, rounds)
			}
		})
	}
}
