package load

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// connectLimit bounds connecting a client.
const connectLimit = 5 * time.Second

// dial opens a connection that never blocks. fd is -1 if it fails.
func dial(addr netip.AddrPort) (fd int, err error) {
	family, sa := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()})
	if addr.Addr().Is4() {
		family, sa = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	}
	fd, err = syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	limit := syscall.NsecToTimeval(connectLimit.Nanoseconds())
	// If the system refuses the option, its own limit applies.
	_ = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit)
	// If the system refuses the option, commands are slower.
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	err = connect(fd, sa)
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		_ = syscall.Close(fd) // nothing has been sent
		return -1, fmt.Errorf("cannot connect to %s: %w", addr, err)
	}
	return fd, nil
}

// connect continues when a signal, perhaps of Go's scheduler, ends the wait but not the attempt.
func connect(fd int, sa syscall.Sockaddr) error {
	begin := time.Now()
	err := syscall.Connect(fd, sa)
	for errors.Is(err, syscall.EINTR) && time.Since(begin) < connectLimit {
		err = syscall.Connect(fd, sa)
	}
	if errors.Is(err, syscall.EISCONN) {
		return nil
	}
	return err
}

// poller waits for connections, which it identifies by a number.
type poller struct {
	fd     int
	events [256]syscall.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &poller{fd: fd}, nil
}

// watch waits until fd is readable and, with writable, until it is writable. how is EPOLL_CTL_ADD
// or EPOLL_CTL_MOD.
func (p *poller) watch(how, fd, number int, writable bool) error {
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(number)}
	if writable {
		e.Events |= syscall.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(p.fd, how, fd, &e))
}

// epoll_pwait2 has the same number on every architecture that Go supports except MIPS. Only this
// call takes nanoseconds.
const sysEpollPwait2 = 441

// wait returns how many of p.events are filled. The raw call keeps Go's processor, because giving
// it up and taking it back would cost more than the wait. If the scheduler needs the processor, it
// ends the wait by a signal, and gets it.
func (p *poller) wait(timeout time.Duration) (int, error) {
	limit := syscall.NsecToTimespec(max(0, timeout).Nanoseconds())
	// Both pointers are to memory that outlives the call, and the call does not keep them.
	n, _, errno := syscall.RawSyscall6(sysEpollPwait2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case syscall.EINTR:
		runtime.Gosched()
		return 0, nil
	}
	return 0, fmt.Errorf("cannot wait for replies (epoll_pwait2, Linux 5.11): %w", errno)
}

// exactTimers makes this thread's waits end on time, and not up to 50 µs later.
func exactTimers() {
	const setTimerSlack, nanosecond = 29, 1
	// If the system refuses, batches are sent later, which Result.Late shows.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, nanosecond, 0)
}
