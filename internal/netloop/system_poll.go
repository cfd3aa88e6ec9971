//go:build !linux || portable

package netloop

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	readable = unix.POLLIN
	writable = unix.POLLOUT
	hungUp   = unix.POLLERR | unix.POLLHUP // reported whether asked for or not
	peerLeft = 0                           // not every system tells of it
)

// peerHasLeft reports whether the peer of a socket sends no more, and nothing of it is unread.
func peerHasLeft(fd int) bool {
	n, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n == 0 && err == nil
}

// event is what poll(2) reported about one descriptor.
type event struct {
	bits uint32
	name name
}

func newEvent(tag, gen int32, bits uint32) event { return event{bits, name{tag, gen}} }

func (e *event) tag() int32           { return e.name.tag }
func (e *event) generation() int32    { return e.name.gen }
func (e *event) has(bits uint32) bool { return e.bits&bits != 0 }

// name is what the events of a descriptor carry.
type name struct{ tag, gen int32 }

// poller is the list that poll(2) gets. A wait takes time in proportion to its length, which is
// good enough for a developer's machine.
type poller struct {
	asked []unix.PollFd
	names []name // of the entries of asked
	place []int  // by descriptor: 1 + its index in asked; 0: not watched
	first int    // where the next wait begins to look, so that all have their turns if there are many events
	wake  *waker
}

func (p *poller) open() error { return nil }

func (p *poller) close() {}

// watch adds a descriptor. Its events carry tag and gen. An existing entry of the same descriptor
// belongs to a listener that another goroutine has closed since; watch replaces it.
func (p *poller) watch(fd int, tag, gen int32, interest uint32) error {
	for len(p.place) <= fd {
		p.place = append(p.place, 0)
	}
	if p.place[fd] == 0 {
		p.asked = append(p.asked, unix.PollFd{Fd: int32(fd)})
		p.names = append(p.names, name{})
		p.place[fd] = len(p.asked)
	}
	p.names[p.place[fd]-1] = name{tag, gen}
	p.asked[p.place[fd]-1].Events = int16(interest)
	return nil
}

func (p *poller) watchWaker(w *waker) error {
	p.wake = w
	return p.watch(w.fd, wakeTag, 0, readable)
}

// change replaces the interest in a descriptor.
func (p *poller) change(fd int, _, _ int32, interest uint32) error {
	p.asked[p.place[fd]-1].Events = int16(interest)
	return nil
}

// ignore stops watching a descriptor that stays open.
func (p *poller) ignore(fd int, tag int32) error {
	p.forget(fd, tag)
	return nil
}

// forget stops watching a descriptor that is closed or about to be, unless its number already
// belongs to another watch. The last entry of the list takes its place.
func (p *poller) forget(fd int, tag int32) {
	if fd >= len(p.place) || p.place[fd] == 0 || p.names[p.place[fd]-1].tag != tag {
		return
	}
	i, last := p.place[fd]-1, len(p.asked)-1
	p.asked[i], p.names[i] = p.asked[last], p.names[last]
	p.place[p.asked[i].Fd] = i + 1
	p.asked, p.names = p.asked[:last], p.names[:last]
	p.place[fd] = 0
}

// waitRaw is waitBlocking: only Linux allows system calls that bypass the Go scheduler.
func (p *poller) waitRaw(events []event, timeout time.Duration) (int, unix.Errno) {
	return p.waitBlocking(events, timeout)
}

// waitBlocking waits for events and lends the processor to others meanwhile.
func (p *poller) waitBlocking(events []event, timeout time.Duration) (int, unix.Errno) {
	left, err := unix.Poll(p.asked, waitMillis(timeout))
	if err == unix.EAGAIN { // the system lacks memory for a moment
		err = unix.EINTR
	}
	if err != nil {
		return 0, errnoOf(err)
	}
	found := 0
	for i, first := 0, p.first; i < len(p.asked) && left > 0 && found < len(events); i++ {
		at := (first + i) % len(p.asked)
		bits := p.asked[at].Revents
		if bits == 0 {
			continue
		}
		left--
		p.first = at + 1
		if p.names[at].tag == wakeTag {
			p.wake.drain()
		}
		if bits &^= unix.POLLNVAL; bits != 0 { // otherwise a closed listener, soon to be forgotten
			events[found] = event{uint32(bits), p.names[at]}
			found++
		}
	}
	return found, 0
}

// waker is a pipe.
type waker struct{ fd, in int }

func (w *waker) open() error {
	var ends [2]int
	err := uninherited(func() error { return unix.Pipe(ends[:]) }, &ends[0], &ends[1])
	if err != nil {
		return fmt.Errorf("cannot create pipe: %w", err)
	}
	w.fd, w.in = ends[0], ends[1]
	return nil
}

func (w *waker) close() {
	unix.Close(w.fd)
	unix.Close(w.in)
}

var one = []byte{1}

// wake ignores errors: the only one possible is a full pipe, which is readable already.
func (w *waker) wake() { _, _ = unix.Write(w.in, one) }

func (w *waker) drain() {
	var scrap [64]byte
	for {
		if n, err := unix.Read(w.fd, scrap[:]); err != nil || n < len(scrap) {
			return
		}
	}
}

// recv reads into p from the socket fd.
func recv(fd int, p []byte) (int, unix.Errno) {
	n, err := unix.Read(fd, p)
	return max(n, 0), errnoOf(err)
}

// send writes p to the socket fd. The Go runtime ignores the SIGPIPE when the peer is gone.
func send(fd int, p []byte) (int, unix.Errno) {
	n, err := unix.Write(fd, p)
	return max(n, 0), errnoOf(err)
}

// acceptSocket accepts a waiting connection of a listener as a non-blocking socket.
func acceptSocket(listener int) (fd int, from unix.Sockaddr, errno unix.Errno) {
	err := uninherited(func() (err error) {
		fd, from, err = unix.Accept(listener)
		return err
	}, &fd)
	return fd, from, errnoOf(err)
}

// newSocket returns a non-blocking TCP socket.
func newSocket(family int) (fd int, err error) {
	err = uninherited(func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_STREAM, 0)
		return err
	}, &fd)
	return fd, err
}

// uninherited calls open, which stores new descriptors in fds, and makes these non-blocking and
// close-on-exec. No other goroutine starts a process in between, so no process inherits them. The
// error is a plain system error number, see errnoOf.
func uninherited(open func() error, fds ...*int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := open(); err != nil {
		return err
	}
	var err error
	for _, fd := range fds {
		unix.CloseOnExec(*fd)
		if failed := unix.SetNonblock(*fd, true); failed != nil {
			err = failed
		}
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(*fd)
		}
	}
	return err
}

// closeListener frees the listener's port before it returns. Closing alone would not free it while
// a loop waits for the listener in poll(2).
func closeListener(fd int) error {
	_ = unix.Shutdown(fd, unix.SHUT_RD) // fails where closing is enough
	return unix.Close(fd)
}
