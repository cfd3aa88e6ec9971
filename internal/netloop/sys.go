package netloop

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the hot path, and the package's only unsafe code. All are made
// raw: the Go scheduler is not told, and the thread keeps its processor. That is right
// for calls that cannot block (the sockets are non-blocking), and a deliberate trade
// for waitRaw. The kernel is done with every pointer given to it when the call returns,
// so ordinary heap slices, kept alive by their caller, are safe to pass.

// recv reads into p from the socket fd.
func recv(fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), errno
}

// send writes p to the socket fd. MSG_NOSIGNAL spares the process a SIGPIPE for every
// peer that went away.
func send(fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// waitRaw waits for events while it keeps the scheduler's processor: coming back costs
// nothing, which is worth 10 % of throughput to a loop with work to do. The price: a
// stop-the-world can only reach the thread by a signal, which ends the wait with EINTR. The
// caller must let the scheduler in then (runtime.Gosched), and not just wait again.
func waitRaw(epfd int, events []unix.EpollEvent, timeout time.Duration) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(waitMillis(timeout)), 0, 0)
	return int(n), errno
}

// waitBlocking waits for events and lends the processor to others meanwhile: for loops
// with nothing to do.
func waitBlocking(epfd int, events []unix.EpollEvent, timeout time.Duration) (int, unix.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(waitMillis(timeout)), 0, 0)
	return int(n), errno
}

// waitMillis rounds up, so that a loop does not wake just before its timer and spin
// until it is due.
func waitMillis(d time.Duration) int {
	return int((d + time.Millisecond - 1) / time.Millisecond)
}

// addressOf is where a slice begins, for comparing.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

var one = [8]byte{1, 0, 0, 0, 0, 0, 0, 0}

// signal makes the eventfd fd readable. It cannot fail in a way that matters: a full
// counter is readable already.
func signal(fd int) {
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one[0])), uintptr(len(one)))
}
