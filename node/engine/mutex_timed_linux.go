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
// in nanoseconds, by loops and by goroutines. A lock is passed over whose goroutine has moved to
// another thread meanwhile, or may have let others use its thread.
var LongestLock atomic.Int64

// LockTimes counts the same locks by their time: those below LockClass, below twice as much, and so on.
// The last one has all that were longer.
var LockTimes [64]atomic.Int64

// LockClass is the width of a class of LockTimes.
const LockClass = 10 * time.Microsecond

// TimeLocks has locks timed.
var TimeLocks atomic.Bool

// yields counts the calls of yield on each thread. Threads may share a counter.
var yields [1 << 10]atomic.Int64

func yieldsOf(thread int) *atomic.Int64 { return &yields[thread%len(yields)] }

// yield lets other goroutines run. Its caller may have a shard locked: that lock is not timed, because
// the thread may work for the others meanwhile. The locks of other threads are.
func yield() {
	yieldsOf(unix.Gettid()).Add(1)
	runtime.Gosched()
}

// mutex is a shard's. It notes how long it is locked.
type mutex struct {
	sync.Mutex
	begun  time.Duration // 0: it is not timed
	thread int
	yields int64 // of the thread, as of then
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
	if m.begun = 0; TimeLocks.Load() {
		m.thread = unix.Gettid()
		m.begun, m.yields = threadSpent(), yieldsOf(m.thread).Load()
	}
}

func (m *mutex) Unlock() {
	if m.begun != 0 && unix.Gettid() == m.thread && yieldsOf(m.thread).Load() == m.yields {
		took := int64(threadSpent() - m.begun)
		LockTimes[min(max(took, 0)/int64(LockClass), int64(len(LockTimes)-1))].Add(1)
		for longest := LongestLock.Load(); took > longest && !LongestLock.CompareAndSwap(longest, took); {
			longest = LongestLock.Load()
		}
	}
	m.Mutex.Unlock()
}

// threadSpent returns the processor time of the present thread.
func threadSpent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
