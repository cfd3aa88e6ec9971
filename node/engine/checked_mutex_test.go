//go:build checked && linux

package engine

import (
	"runtime"
	"testing"
	"time"
)

// A lock is timed, but not one whose goroutine has let others use its thread.
func TestTimedLocks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer TimeLocks.Store(TimeLocks.Swap(true))
	const long = time.Hour
	for _, yields := range []bool{false, true} {
		before := LongestLock.Swap(0)
		var m mutex
		m.Lock()
		if yields {
			yield()
		}
		m.begun -= long
		m.Unlock()
		if timed := LongestLock.Swap(before) >= int64(long); timed == yields {
			t.Errorf("yields: %t, timed: %t", yields, timed)
		}
	}
}
