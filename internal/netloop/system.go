package netloop

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The files system*.go contain everything that loops ask of the operating system:
//
//	system_epoll.go     Linux: epoll, an eventfd, raw system calls
//	system_gate.go      how an idle loop waits there
//	system_poll.go      elsewhere, and on Linux with the build tag portable: poll(2), a pipe
//	system_linux.go     options of sockets whose names differ, and the times of threads
//	system_darwin.go
//
// A build contains the first two or system_poll.go, and one of the others. Each pair provides the same:
//
//	event     what happened to a descriptor: its tag and generation, and which of readable,
//	          writable and hungUp apply
//	poller    the descriptors that a loop watches, level-triggered
//	waker     a descriptor that other goroutines make readable
//	recv, send, acceptSocket, newSocket

// waitMillis rounds up, so that a loop does not wake just before its timer and spin until the timer
// is due.
func waitMillis(d time.Duration) int {
	return int((d + time.Millisecond - 1) / time.Millisecond)
}

// errnoOf returns the error number in an error of an x/sys system call; 0 for nil.
func errnoOf(err error) unix.Errno {
	errno, _ := err.(unix.Errno) //nolint:errorlint // never wrapped, and asked for on the hot path
	return errno
}

// addressOf returns the address of a slice's first byte, for comparisons only.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
