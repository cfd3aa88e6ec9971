package netloop

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// keepIdle is the option that sets after how many seconds of silence the system probes the peer.
const keepIdle = unix.TCP_KEEPIDLE

// undelivered returns the number of bytes that the peer has not acknowledged; 0 if unknown.
func undelivered(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.TIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

// threadID returns the system's number of the calling thread.
func threadID() int { return unix.Gettid() }

// threadTimes returns for how long a thread of this process has run since it started, and for how
// long it could have run and had no processor. Both are 0 if the system does not say, as kernels
// without CONFIG_SCHED_INFO do.
func threadTimes(thread int) (ran, wanted time.Duration) {
	fd, err := unix.Open("/proc/self/task/"+strconv.Itoa(thread)+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0
	}
	var buf [64]byte
	n, err := unix.Read(fd, buf[:])
	unix.Close(fd)
	fields := bytes.Fields(buf[:max(0, n)])
	if err != nil || len(fields) < 2 {
		return 0, 0
	}
	nanos := func(b []byte) time.Duration {
		n, _ := strconv.ParseInt(string(b), 10, 64) // 0 for what is no number
		return time.Duration(n)
	}
	return nanos(fields[0]), nanos(fields[1])
}
