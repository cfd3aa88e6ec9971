//go:build linux && (checked || locktimes)

package engine

import (
	"runtime"
	"testing"
	"time"
)

// A lock is timed, but not one whose goroutine has let others use its thread. What other threads do does not matter.
func TestTimedLocks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer TimeLocks.Store(TimeLocks.Swap(true))
	const long = time.Hour
	for _, who := range []string{"nobody", "another", "itself"} {
		before := LongestLock.Swap(0)
		var m mutex
		m.Lock()
		switch who {
		case "itself":
			yield()
		case "another":
			done := make(chan struct{})
			go func() { yield(); close(done) }()
			<-done
		}
		m.begun -= long
		m.Unlock()
		counted := LockTimes[len(LockTimes)-1].Swap(0) == 1
		if timed := LongestLock.Swap(before) >= int64(long); timed != counted || timed == (who == "itself") {
			t.Errorf("%s yields, timed: %t, counted: %t", who, timed, counted)
		}
	}
}
