package engine

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestHeldMemoryLeavesRoom: large values that are being written, and the caller's own memory, leave
// pages for small records in all partitions, whichever of them comes first.
func TestHeldMemoryLeavesRoom(t *testing.T) {
	oneGoroutine(t)
	f := func(name string, takers ...func(*Engine) bool) {
		t.Run(name, func(t *testing.T) {
			e := open(t, Config{MaxBytes: testMin, Shards: 4})
			fillUp(e)
			for _, take := range takers {
				for taken := 0; take(e); taken++ {
					if taken > testMin/osPage {
						t.Fatal("more than the limit is taken")
					}
				}
			}
			for p := range uint16(Partitions) {
				mustSet(t, e, p, fmt.Sprint(p), make([]byte, p%200))
			}
			if st := e.Stats(); st.Used > st.Max {
				t.Errorf("%+v", st)
			}
			e.checkSums(t)
		})
	}
	var staged []Staged
	stage := func(e *Engine) bool {
		const n = 1 << 20
		st, err := e.Stage(0, []byte("key"), n)
		if err == nil {
			staged = append(staged, st)
			err = st.Skip(n)
		}
		return err == nil
	}
	charge := func(e *Engine) bool { return e.Charge(osPage) }
	f("staged, then charged", stage, charge)
	f("charged, then staged", charge, stage)
	f("in turns", func(e *Engine) bool { return stage(e) || charge(e) })
	for i := range staged {
		staged[i].Discard()
	}
}

// TestNobodyWaitsForALock: all records are in a shard that somebody keeps locked. Another shard has
// pages for small records nevertheless, and whoever needs more there learns at once that there is
// no more.
func TestNobodyWaitsForALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, Config{MaxBytes: testMin, Shards: 4})
		for i := range testMin / 1000 {
			mustSet(t, e, 1, fmt.Sprint(i), make([]byte, 1000))
		}
		busy := e.Lock(1, 0)
		start, done := time.Now(), make(chan error)
		go func() {
			free := e.Lock(0, 0)
			defer free.Unlock()
			for i := range testMin / 1000 {
				if err := free.Set(fmt.Append(nil, i), make([]byte, 1+i%4000), TypeString, 0); err != nil {
					done <- err
					return
				}
			}
			done <- free.Set([]byte("key"), make([]byte, testMin/2), TypeString, 0)
		}()
		if err := <-done; err != ErrMemory || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		busy.Unlock()
		mustSet(t, e, 0, "key", make([]byte, testMin/2))
	})
}

// TestChargeAloneWaits: all records are in a shard that is locked. A caller that may hold another finds no memory, and
// one that holds none waits for it.
func TestChargeAloneWaits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // whoever yields lets the other one go on
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	for i := range testMin / 1000 {
		mustSet(t, e, 1, fmt.Sprint(i), make([]byte, 1000))
	}
	const bytes = testMin / 4
	busy := e.Lock(1, 0)
	if e.Charge(bytes) {
		t.Error("the memory was there")
	}
	charged := make(chan bool)
	go func() { charged <- e.ChargeAlone(bytes) }()
	for range 1000 { // else it would have ended by now
		runtime.Gosched()
	}
	waited := true
	select {
	case <-charged:
		waited = false
	default:
	}
	busy.Unlock()
	if !waited || !<-charged {
		t.Errorf("it found no memory, or did not wait for it: %v", waited)
	}
}
