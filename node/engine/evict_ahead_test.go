package engine

import (
	"errors"
	"fmt"
	"testing"
)

// newFullEngine is an engine of two shards with pages of 64 KiB whose memory is full of n records of
// 24 bytes.
func newFullEngine(t *testing.T) (e *Engine, n int) {
	e = open(t, Config{MaxBytes: 16 << 20, Shards: 2})
	for ; !e.pool.tight(); n++ {
		mustSet(t, e, uint16(n)%2, fmt.Sprintf("k%08d", n), []byte("value"))
	}
	return e, n
}

// went is how many records have gone to make room, or have moved for it, in all shards.
func (e *Engine) went() (n uint64) {
	for i := range e.shards {
		n += e.shards[i].changes
	}
	return n
}

// TestWritesWithinASlice: whatever is written while memory is full, no page full of records goes
// under the lock of a write.
func TestWritesWithinASlice(t *testing.T) {
	oneGoroutine(t)
	const writes = 30_000
	for what, write := range map[string]func(n, i int) (key string, value []byte){
		"new keys":  func(n, i int) (string, []byte) { return fmt.Sprintf("k%08d", n+i), []byte("value") },
		"new shard": func(n, i int) (string, []byte) { return fmt.Sprintf("k%08d", n+i&^1), []byte("value") },
		"new length": func(n, i int) (string, []byte) {
			return fmt.Sprintf("k%08d", n-1-i%20_000), make([]byte, i/500*37%500)
		},
		"all lengths": func(n, i int) (string, []byte) {
			return fmt.Sprintf("k%08d", n-1-i%2000), make([]byte, 1<<(i%15)+i*31%(1<<(i%15)))
		},
	} {
		for _, used := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/used %t", what, used), func(t *testing.T) {
				e, n := newFullEngine(t)
				worst := uint64(0)
				for i := range writes {
					key, value := write(n, i)
					with(e, uint16(key[len(key)-1])%2, 0, func(x Txn) {
						before := e.went()
						if err := x.Set([]byte(key), value, TypeString, 0); err != nil {
							t.Fatal(err)
						}
						worst = max(worst, e.went()-before)
						if used {
							x.Find([]byte(key))
						}
					})
				}
				if worst > 2*roomAtOnce+judgeSteps+evictUsed {
					t.Errorf("%d records went or moved under one lock", worst)
				}
				e.checkSums(t)
			})
		}
	}
}

// TestKeepsPagesFree: so many pages are free soon after a write, and where nothing may be evicted,
// writes use them up.
func TestKeepsPagesFree(t *testing.T) {
	oneGoroutine(t)
	e, n := newFullEngine(t)
	for i := range 50_000 {
		mustSet(t, e, uint16(n+i)%2, fmt.Sprintf("k%08d", n+i), make([]byte, i/500*37%500))
	}
	keep := e.pool.toKeep()
	for i := range 2 * slicesAtOnce { // what the last ones took
		with(e, uint16(i)%2, 0, func(Txn) {})
	}
	if keep == 0 || e.pool.free() < keep {
		t.Errorf("%d pages are free, want %d", e.pool.free(), keep)
	}
	e.SetPolicy(NoEviction)
	err := error(nil)
	for i := 0; err == nil; i++ {
		with(e, uint16(i)%2, 0, func(x Txn) { err = x.Set(fmt.Appendf(nil, "new%d", i), make([]byte, 100), TypeString, 0) })
	}
	if !errors.Is(err, ErrMemory) {
		t.Fatal(err)
	}
	if e.pool.free() > 0 {
		t.Errorf("%d pages are free, but a value is refused", e.pool.free())
	}
	e.checkSums(t)
}
