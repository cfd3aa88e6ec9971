//go:build linux && (checked || locktimes)

package engine

import (
	"runtime"
	"testing"
	"time"
)

// The time of a lock is what its goroutine takes, not what others take while it lets them run.
func TestTimedLocks(t *testing.T) {
	defer TimeLocks.Store(TimeLocks.Swap(true))
	defer LongestLock.Store(LongestLock.Swap(0))
	const long = 100 * time.Millisecond
	spin := func() {
		for begun := threadSpent(); threadSpent()-begun < long; {
		}
	}
	timed := func(f func()) time.Duration {
		var m mutex
		m.Lock()
		f()
		m.Unlock()
		return time.Duration(LongestLock.Swap(0))
	}
	before := LockTimes[len(LockTimes)-1].Load()
	if took := timed(spin); took < long {
		t.Errorf("a lock of %v is timed as %v", long, took)
	}
	if n := LockTimes[len(LockTimes)-1].Load() - before; n != 1 {
		t.Errorf("a long lock is counted %d times", n)
	}
	others := func() { // on all threads, the lock's too if it were free
		done := make(chan struct{})
		for range runtime.GOMAXPROCS(0) {
			go func() {
				runtime.LockOSThread()
				spin()
				runtime.UnlockOSThread()
				done <- struct{}{}
			}()
		}
		for range runtime.GOMAXPROCS(0) {
			<-done
		}
	}
	if took := timed(others); took >= long/2 {
		t.Errorf("a lock that waits for others' work is timed as %v", took)
	}
}
