//go:build linux && !portable

package netloop

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// gate is how a loop with nothing to do waits in Go's own poller, as a goroutine that waits for a
// network connection does: it holds no thread and no processor, and the runtime's monitor sleeps.
// A system call that lasts keeps the monitor awake, which looks after the processor of that call
// some fifty times.
//
// Go's poller watches another epoll instance, and that one watches the loop's, for events only while the
// loop waits here. Otherwise each event of a busy loop would wake a thread of the runtime. It is added once:
// to add an epoll instance to another one, the kernel looks at all connections of it.
//
// An alarm of the system ends the wait in time. A timer of Go's would wake a thread a millisecond
// early, then another one, and the monitor.
type gate struct {
	fd    int      // an epoll instance
	file  *os.File // has fd
	conn  syscall.RawConn
	alarm int // a timerfd, which the loop's epoll instance watches
}

// open makes a gate for p.
func (g *gate) open(p *poller) (err error) {
	if g.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("cannot create epoll instance: %w", os.NewSyscallError("epoll_create1", err))
	}
	// NewFile gives only non-blocking descriptors to Go's poller.
	if err = unix.SetNonblock(g.fd, true); err != nil {
		unix.Close(g.fd)
		return fmt.Errorf("cannot make epoll instance non-blocking: %w", os.NewSyscallError("fcntl", err))
	}
	g.file = os.NewFile(uintptr(g.fd), "epoll")
	if g.conn, err = g.file.SyscallConn(); err == nil {
		err = g.file.SetReadDeadline(time.Time{}) // fails if Go's poller has refused the file
	}
	if err != nil {
		g.file.Close()
		return fmt.Errorf("cannot wait through Go's poller: %w", err)
	}
	gate := poller{fd: g.fd}
	if err = gate.watch(p.fd, 0, 0, 0); err != nil {
		g.file.Close()
		return err
	}
	if g.alarm, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		g.file.Close()
		return fmt.Errorf("cannot create alarm: %w", os.NewSyscallError("timerfd_create", err))
	}
	// Edge-triggered: nobody has to read it.
	if err = p.watch(g.alarm, wakeTag, 0, unix.EPOLLIN|unix.EPOLLET); err != nil {
		g.close()
		return err
	}
	return nil
}

func (g *gate) close() {
	unix.Close(g.alarm)
	g.file.Close()
}

// wait calls try, and again whenever p has events, until try reports true. After timeout p has one.
func (g *gate) wait(p *poller, try func(uintptr) bool, timeout time.Duration) error {
	alarm := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(timeout, 1)))}
	if err := unix.TimerfdSettime(g.alarm, 0, &alarm, nil); err != nil {
		return os.NewSyscallError("timerfd_settime", err)
	}
	gate := poller{fd: g.fd}
	if err := gate.change(p.fd, 0, 0, readable); err != nil {
		return err
	}
	err := g.conn.Read(try)
	return errors.Join(err, gate.change(p.fd, 0, 0, 0))
}
