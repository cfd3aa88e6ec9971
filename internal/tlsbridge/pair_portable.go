//go:build !linux || portable

package tlsbridge

import (
	"errors"
	"syscall"
)

// socketPair returns two non-blocking sockets.
func socketPair() ([2]int, error) {
	syscall.ForkLock.RLock() // no process that starts meanwhile inherits the sockets
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return fds, err
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		err = errors.Join(err, syscall.SetNonblock(fd, true))
	}
	if err != nil {
		_ = syscall.Close(fds[0])
		_ = syscall.Close(fds[1])
	}
	return fds, err
}
