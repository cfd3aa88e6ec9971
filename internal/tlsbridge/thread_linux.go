package tlsbridge

import (
	"syscall"
	"time"
)

// rusageThread asks for the calling thread.
const rusageThread = 1

// threadTime returns for how long the calling thread has had a processor. Time in which it was
// interrupted does not count.
func threadTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(rusageThread, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
