package netloop

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// maxWait is the longest sleep. Because of it, a loop that was stopped with its process, suspended
// with its machine, or throttled, notices that it was away.
const maxWait = 100 * time.Millisecond

// wait sleeps until there is something to do, and starts the next iteration's clock. It returns the
// number of events.
func (l *Loop) wait() int {
	ended := l.clock.now()
	busy := ended - l.now
	l.stats.Iterations++
	l.stats.Busy += busy
	l.busy.Store(int64(l.stats.Busy))
	l.stats.LongestIteration = max(l.stats.LongestIteration, busy)

	if len(l.backlog) > 0 {
		n := copy(l.events, l.backlog)
		l.backlog = l.backlog[:0]
		l.noteGap(ended, 0)
		return n
	}
	timeout := l.timeout(ended)
	n, errno, now := 0, unix.Errno(0), ended
	looks := l.polling.limit > 0 && timeout > 0 && !l.mail.pending.Load() // there is a wait to shorten
	if looks && l.polling.window > 0 {
		n, errno, now = l.look(ended, timeout)
	}
	if n == 0 && errno == 0 {
		timeout = max(0, timeout-(now-ended))
		if !l.idle && !l.rawOnly {
			timeout = min(timeout, rawWait)
		}
		n, errno = l.sleep(timeout)
		timeout += now - ended
	}
	if errno != 0 {
		n = 0
		l.noteWaitError(errno)
	}
	l.idle = l.idle || n == 0
	l.noteGap(ended, timeout)
	if n > 0 && l.gap <= rawWait {
		l.idle = false
	}
	if looks {
		l.polling.learn(l.now - ended)
	}
	return n
}

// sleep waits for events, at most for timeout.
func (l *Loop) sleep(timeout time.Duration) (n int, errno unix.Errno) {
	if timeout > 0 && !l.mail.fallAsleep() {
		timeout = 0
	}
	places := l.polling.places
	if places != nil {
		places.awake.Add(-1)
	}
	n, errno = l.poll(timeout)
	if places != nil {
		places.awake.Add(1)
	}
	l.mail.wakeUp()
	return n, errno
}

// rawWait is for how long a loop waits by the raw call, and how soon the next event must follow for
// a loop to go back to it.
const rawWait = 2 * time.Millisecond

// poll chooses how to wait. A raw wait that returns no event has lasted for rawWait, or was ended by
// the scheduler, which needs the processor: the loop is idle, and lends its processor while it
// waits. It stays idle while events come one by one.
func (l *Loop) poll(timeout time.Duration) (int, unix.Errno) {
	if l.idle && timeout > 0 && !l.rawOnly {
		n, errno := l.poller.waitBlocking(l.events, timeout)
		l.thread.Store(int64(threadID())) // it may be another one
		return n, errno
	}
	return l.poller.waitRaw(l.events, timeout)
}

// noteWaitError yields after EINTR: the signal may be the scheduler's, which waits for this thread
// to stop the world.
func (l *Loop) noteWaitError(errno unix.Errno) {
	if errno != unix.EINTR {
		panic(fmt.Sprintf("BUG: cannot wait for events: %v", errno))
	}
	runtime.Gosched()
}

// timeout returns how long the loop may sleep.
func (l *Loop) timeout(now time.Duration) time.Duration {
	if len(l.woken)+len(l.dirtyFlushers)+len(l.dirtyConns)+len(l.closing)+len(l.leaving)+l.newcomers.Len() > 0 {
		return 0
	}
	if len(l.timers) == 0 {
		return maxWait
	}
	return min(maxWait, max(0, l.timers[0].at-now))
}
