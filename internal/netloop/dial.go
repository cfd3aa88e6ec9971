package netloop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// dial is one call of Loop.Dial until one of its callbacks has run.
type dial struct {
	loop   *Loop
	addr   string
	open   func(c *Conn) Handler
	failed func(error)
	timer  *Timer
	conn   *Conn              // nil while the name is being resolved
	cancel context.CancelFunc // ends resolving
}

// Dial connects to addr ("ip:port" or "name:port"). Exactly one of the callbacks runs, on the loop
// and never inside Dial. open gets the connected conn and returns its handler (nil closes the
// conn). fail gets the error, also after timeout or when the group closes. If the group is closed
// already, neither runs.
func (l *Loop) Dial(
	addr string, timeout time.Duration, open func(c *Conn) Handler, fail func(error),
) {
	d := &dial{loop: l, addr: addr, open: open, failed: fail}
	l.dials[d] = struct{}{}
	d.timer = l.After(timeout, func() { d.fail(os.ErrDeadlineExceeded) })
	if to, err := netip.ParseAddrPort(addr); err == nil {
		// Posted, so that an immediate failure is not reported inside this call.
		l.Post(func() { d.connect(to) })
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	d.cancel = cancel
	go func() {
		to, err := resolve(ctx, addr)
		l.Post(func() {
			if err != nil {
				d.fail(err)
				return
			}
			d.connect(to)
		})
	}()
}

// Dialer connects to addr and returns a connected, non-blocking descriptor. A Dialer itself may
// block.
type Dialer func(ctx context.Context, addr string) (fd int, err error)

// DialBy is Dial with a connection that by makes, over TLS for instance.
func (l *Loop) DialBy(
	by Dialer, addr string, timeout time.Duration, open func(c *Conn) Handler, fail func(error),
) {
	d := &dial{loop: l, addr: addr, open: open, failed: fail}
	l.dials[d] = struct{}{}
	d.timer = l.After(timeout, func() { d.fail(os.ErrDeadlineExceeded) })
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	d.cancel = cancel
	go func() {
		fd, err := by(ctx, addr)
		posted := l.mail.post(func() {
			switch {
			case err != nil:
				d.fail(err)
			case d.done():
				unix.Close(fd)
			default:
				d.adopt(fd)
			}
		})
		if !posted && err == nil {
			unix.Close(fd)
		}
	}()
}

// adopt makes a conn of a connected socket.
func (d *dial) adopt(fd int) {
	l := d.loop
	to, _ := netip.ParseAddrPort(d.addr) // zero if addr is a name
	l.load.Add(1)
	c := l.newConn(fd, to)
	c.armed = readable
	if err := l.poller.watch(fd, int32(fd), c.gen, c.armed); err != nil {
		d.conn = c
		d.fail(err)
		return
	}
	d.end()
	l.stats.Dialed++
	c.open(d.open)
}

// resolve resolves "name:port" and returns the first address.
func resolve(ctx context.Context, addr string) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return netip.AddrPort{}, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(port)), nil
}

// connect starts connecting. The socket's first event reports the result.
func (d *dial) connect(to netip.AddrPort) {
	if d.done() {
		return
	}
	fd, err := startConnect(to)
	if err != nil {
		d.fail(err)
		return
	}
	l := d.loop
	l.load.Add(1)
	c := l.newConn(fd, to)
	c.dial = d
	d.conn = c
	c.armed = c.interest()
	if err := l.poller.watch(fd, int32(fd), c.gen, c.armed); err != nil {
		d.fail(err)
	}
}

func startConnect(to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET6
	var sa unix.Sockaddr = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if to.Addr().Unmap().Is4() {
		family = unix.AF_INET
		sa = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()}
	}
	fd, err = newSocket(family)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	setOptions(fd)
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, os.NewSyscallError("connect", err)
	}
	return fd, nil
}

// finish handles the first event of a connecting socket.
func (d *dial) finish() {
	code, err := unix.GetsockoptInt(d.conn.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		d.fail(os.NewSyscallError("connect", err))
		return
	}
	d.end()
	c := d.conn
	c.dial = nil
	if sa, err := unix.Getsockname(c.fd); err == nil {
		c.local = addrPort(sa)
	}
	c.rearmLater()
	c.loop.stats.Dialed++
	c.open(d.open)
}

// fail ends the dial with an error, unless it has ended already.
func (d *dial) fail(err error) {
	if d.done() {
		return
	}
	d.end()
	if d.conn != nil {
		d.conn.Close(err) // has no handler yet
	}
	err = fmt.Errorf("cannot connect to %q: %w", d.addr, err)
	d.loop.call("dial", func() { d.failed(err) })
}

func (d *dial) done() bool {
	_, active := d.loop.dials[d]
	return !active
}

func (d *dial) end() {
	delete(d.loop.dials, d)
	d.timer.Stop()
	if d.cancel != nil {
		d.cancel()
	}
}
