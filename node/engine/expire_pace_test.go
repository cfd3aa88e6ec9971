package engine

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleSweepRests: while nothing expires, the sweep runs seldom; when something does, it runs at
// its usual pace.
func TestIdleSweepRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
		var mu sync.Mutex // of the two below
		var clock time.Time
		turns := 0
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			e.KeepSwept(stop, func() int64 {
				mu.Lock()
				defer mu.Unlock()
				if now := time.Now(); now != clock {
					clock = now
					turns++
				}
				return clock.UnixMilli()
			})
		}()
		run := func(what string, least, most int) {
			synctest.Wait()
			mu.Lock()
			turns = 0
			mu.Unlock()
			time.Sleep(10 * sweepRest)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if turns < least || turns > most {
				t.Errorf("%s: %d turns in %v, want %d to %d", what, turns, 10*sweepRest, least, most)
			}
		}
		time.Sleep(2 * sweepRest)
		run("empty", 5, 11)
		at := time.Now().UnixMilli()
		for i := range 200 {
			with(e, 0, at, func(x Txn) {
				if err := x.Set([]byte(fmt.Sprint(i)), nil, TypeString, at+int64(i)*20); err != nil {
					t.Error(err)
				}
			})
		}
		run("something expires", 100, 300)
		close(stop)
		<-stopped
	})
}

// TestKeepSwept: what expires is gone a round later, and its memory with it; what does not expire
// stays.
func TestKeepSwept(t *testing.T) {
	const keys, ttl = 20_000, 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		e := open(t, Config{MaxBytes: 64 << 20, Shards: 16})
		empty := e.Used()
		now := func() int64 { return time.Now().UnixMilli() }
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			e.KeepSwept(stop, now)
		}()
		for i := range keys + 1 {
			at := now() + ttl.Milliseconds() + int64(i%1000)
			if i == keys {
				at = now() + time.Hour.Milliseconds()
			}
			with(e, uint16(i%Partitions), now(), func(x Txn) {
				if err := x.Set([]byte(fmt.Sprint(i)), make([]byte, 200), TypeString, at); err != nil {
					t.Error(err)
				}
			})
		}
		full := e.Used()
		time.Sleep(ttl - sweepTick)
		if st := e.Stats(); st.Keys != keys+1 {
			t.Errorf("%d keys are left before their time", st.Keys)
		}
		time.Sleep(time.Second + sweepRound + 2*sweepRest)
		if st := e.Stats(); st.Keys != 1 || st.Expired != keys || st.Used-empty > (full-empty)/2 {
			t.Errorf("a round later: %+v, %d bytes were used", st, full)
		}
		close(stop)
		<-stopped
		e.checkSums(t)
	})
}
