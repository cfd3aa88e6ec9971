//go:build linux && !portable

package netloop

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the hot path are raw: the Go scheduler does not know of them, and the thread
// keeps its processor. That is right for calls that cannot block (the sockets are non-blocking),
// and a deliberate trade-off for waitRaw. The kernel no longer uses any pointer when the call
// returns, so ordinary heap slices, kept alive by the caller, are safe to pass.

const (
	readable = unix.EPOLLIN
	writable = unix.EPOLLOUT
	hungUp   = unix.EPOLLERR | unix.EPOLLHUP // reported whether asked for or not
	peerLeft = unix.EPOLLRDHUP               // also in front of unread input
)

// peerHasLeft reports whether the peer of a socket sends no more.
func peerHasLeft(fd int) bool {
	asked := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(asked, 0)
	return err == nil && n > 0
}

// event has the kernel's layout in memory: its Fd is our tag, its Pad our generation.
type event unix.EpollEvent

func newEvent(tag, gen int32, bits uint32) event { return event{Events: bits, Fd: tag, Pad: gen} }

func (e *event) tag() int32           { return e.Fd }
func (e *event) generation() int32    { return e.Pad }
func (e *event) has(bits uint32) bool { return e.Events&bits != 0 }

// poller is an epoll instance.
type poller struct {
	fd   int
	gate gate

	try    func(uintptr) bool // see waitBlocking, for which the rest is
	events []event
	n      int
	errno  unix.Errno
}

func (p *poller) open() (err error) {
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("cannot create epoll instance: %w", err)
	}
	if err = p.gate.open(p); err != nil {
		unix.Close(p.fd)
		return err
	}
	p.try = func(uintptr) bool {
		p.n, p.errno = p.waitRaw(p.events, 0)
		return p.n > 0 || p.errno != 0
	}
	return nil
}

func (p *poller) close() {
	p.gate.close()
	unix.Close(p.fd)
}

// watch adds a descriptor. Its events carry tag and gen.
func (p *poller) watch(fd int, tag, gen int32, interest uint32) error {
	ev := unix.EpollEvent(newEvent(tag, gen, interest))
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("cannot watch descriptor: %w", os.NewSyscallError("epoll_ctl", err))
	}
	return nil
}

// watchWaker watches edge-triggered: nobody has to read the descriptor.
func (p *poller) watchWaker(w *waker) error {
	return p.watch(w.fd, wakeTag, 0, unix.EPOLLIN|unix.EPOLLET)
}

// change replaces the interest in a descriptor.
func (p *poller) change(fd int, tag, gen int32, interest uint32) error {
	ev := unix.EpollEvent(newEvent(tag, gen, interest))
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &ev))
}

// ignore stops watching a descriptor that stays open.
func (p *poller) ignore(fd int, _ int32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil))
}

// forget has nothing to do: closing a descriptor stops watching it.
func (p *poller) forget(int, int32) {}

// waitRaw waits for events while it keeps the scheduler's processor. Returning then costs nothing,
// which is worth 10 % of throughput to a loop with work to do. The price: the runtime can stop the
// world only by a signal to the thread, which ends the wait with EINTR. The caller must then let
// the scheduler run (runtime.Gosched) instead of just waiting again.
func (p *poller) waitRaw(events []event, timeout time.Duration) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(waitMillis(timeout)), 0, 0)
	return int(n), errno
}

// waitBlocking waits for events as a goroutine, without a thread: for loops with nothing to do.
func (p *poller) waitBlocking(events []event, timeout time.Duration) (int, unix.Errno) {
	p.events = events
	runtime.UnlockOSThread() // the thread that finds the event goes on with the loop
	err := p.gate.wait(p, p.try, timeout)
	runtime.LockOSThread()
	if err != nil {
		panic("BUG: cannot wait for events: " + err.Error())
	}
	return p.n, p.errno
}

// waker is an eventfd.
type waker struct{ fd int }

func (w *waker) open() (err error) {
	if w.fd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("cannot create eventfd: %w", err)
	}
	return nil
}

func (w *waker) close() { unix.Close(w.fd) }

var one = [8]byte{1, 0, 0, 0, 0, 0, 0, 0}

// wake ignores errors: the only one possible is a full counter, which is readable already.
func (w *waker) wake() {
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(w.fd), uintptr(unsafe.Pointer(&one[0])), uintptr(len(one)))
}

// recv reads into p from the socket fd.
func recv(fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), errno
}

// send writes p to the socket fd. MSG_NOSIGNAL prevents a SIGPIPE when the peer is gone.
func send(fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// acceptSocket accepts a waiting connection of a listener as a non-blocking socket.
func acceptSocket(listener int) (int, unix.Sockaddr, unix.Errno) {
	fd, from, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	return fd, from, errnoOf(err)
}

// newSocket returns a non-blocking TCP socket.
func newSocket(family int) (int, error) {
	return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// closeListener frees the listener's port before it returns.
func closeListener(fd int) error { return unix.Close(fd) }
