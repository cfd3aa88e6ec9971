//go:build checked || locktimes

package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// LongestLock is the processor time for which a shard was locked longest since it was last set to 0,
// in nanoseconds, by loops and by goroutines.
var LongestLock atomic.Int64

// LockTimes counts the same locks by their time: those below LockClass, below twice as much, and so on.
// The last one has all that were longer.
var LockTimes [64]atomic.Int64

// LockClass is the width of a class of LockTimes.
const LockClass = 10 * time.Microsecond

// TimeLocks has locks timed.
var TimeLocks atomic.Bool

// mutex is a shard's. It notes how long it is locked. Meanwhile its goroutine has the thread alone: what
// the thread takes is the lock's, also if the goroutine lets others run.
type mutex struct {
	sync.Mutex
	timed bool
	begun time.Duration
}

func (m *mutex) Lock() {
	m.Mutex.Lock()
	m.begin()
}

func (m *mutex) TryLock() bool {
	ok := m.Mutex.TryLock()
	if ok {
		m.begin()
	}
	return ok
}

func (m *mutex) begin() {
	if m.timed = TimeLocks.Load(); m.timed {
		runtime.LockOSThread()
		m.begun = threadSpent()
	}
}

func (m *mutex) Unlock() {
	if !m.timed {
		m.Mutex.Unlock()
		return
	}
	took := int64(threadSpent() - m.begun)
	LockTimes[min(took/int64(LockClass), int64(len(LockTimes)-1))].Add(1)
	for longest := LongestLock.Load(); took > longest && !LongestLock.CompareAndSwap(longest, took); {
		longest = LongestLock.Load()
	}
	m.Mutex.Unlock()
	runtime.UnlockOSThread()
}

// threadSpent returns the processor time of the present thread.
func threadSpent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
