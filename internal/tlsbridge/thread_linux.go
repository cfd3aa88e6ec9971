package tlsbridge

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns for how long the calling thread has had a processor. Time in which it was
// interrupted does not count.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
