package netloop

import (
	"time"

	"golang.org/x/sys/unix"
)

// keepIdle is the option that sets after how many seconds of silence the system probes the peer.
const keepIdle = unix.TCP_KEEPALIVE

// undelivered returns the number of bytes that the peer has not acknowledged; 0 if unknown.
func undelivered(fd int) int {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NWRITE)
	if err != nil {
		return 0
	}
	return n
}

// threadID and threadTimes know nothing here.
func threadID() int { return 0 }

func threadTimes(int) (ran, wanted time.Duration) { return 0, 0 }
