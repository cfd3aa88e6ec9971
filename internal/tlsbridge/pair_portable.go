//go:build !linux || portable

package tlsbridge

import (
	"errors"
	"syscall"
)

// socketPair returns two sockets that do not block.
func socketPair() ([2]int, error) {
	syscall.ForkLock.RLock() // no process that is started meanwhile inherits them
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
