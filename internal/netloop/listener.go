package netloop

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// acceptBatch is how many connections one iteration accepts, so that a storm of connections
	// does not delay those that are open. After acceptTime it accepts no more, but always one.
	acceptBatch   = 64
	acceptTime    = 300 * time.Microsecond
	acceptBackoff = 100 * time.Millisecond // pause after running out of descriptors or memory
	acceptLogGap  = time.Second
	// keepAlive is after how many seconds of silence the system probes the peer, as in Redis.
	keepAlive = 300
	// notSent bounds, in bytes, the output of a conn that the kernel takes beyond what is in
	// flight. It would take 4 MiB otherwise. Then a thousand peers that do not read exhaust its
	// memory for TCP, and it drops what others receive.
	notSent = 256 << 10
)

// Wrapper stands between the sockets that a listener accepts and the loops, to terminate TLS for
// instance.
type Wrapper interface {
	// Ready reports whether the Wrapper takes another socket now. If not, connections wait in the
	// kernel for a while.
	Ready() bool
	// Memory returns about how many bytes each wrapped socket takes. They count in the conn's
	// account.
	Memory() int
	// Wrap takes over a non-blocking socket. Later, from any goroutine, it calls give with a
	// non-blocking descriptor for the loops to use instead; or it closes the socket and does not
	// call give. taken is called, on any goroutine, when a loop has the descriptor or has closed it.
	// Until then the connection waits for a loop, and it is for the Wrapper to bound how many do.
	// Wrap itself must not block.
	Wrap(fd int, remote netip.AddrPort, give func(fd int, taken func()))
}

// Listener accepts connections for all loops of a group. One of the loops watches it.
type Listener struct {
	group  *Group
	loop   *Loop
	addr   string
	wrap   Wrapper // nil: none
	handle func(c *Conn) Handler
	number int // index in loop.listeners
	last   int // index of the loop that got the last connection; only used on loop
	logged time.Duration
	rest   time.Duration // while newcomers wait, none are accepted before that time

	mu sync.Mutex
	fd int // -1 when closed: accepting and closing exclude each other
}

// Listen accepts TCP connections on addr ("host:port", port 0 for any free one). Each goes to the
// loop with the fewest connections. accept runs on that loop and returns the conn's handler, or nil
// to refuse the conn; so several loops may call accept at once. Connections that cannot be accepted
// for lack of descriptors wait in the kernel; Listen logs this once a second.
func (g *Group) Listen(addr string, accept func(c *Conn) Handler) (*Listener, error) {
	return g.ListenWrapped(addr, nil, accept)
}

// ListenWrapped is Listen for connections that w wraps; a nil w wraps none.
func (g *Group) ListenWrapped(addr string, w Wrapper, accept func(c *Conn) Handler) (*Listener, error) {
	fd, bound, err := listenFD(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", addr, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot listen on %q: %w", addr, ErrClosed)
	}
	l := g.loops[g.nextLoop%len(g.loops)]
	g.nextLoop++
	ln := &Listener{group: g, loop: l, addr: bound, wrap: w, handle: accept, fd: fd, number: -1}
	g.listeners[ln] = struct{}{}
	l.Post(ln.start)
	return ln, nil
}

// listenFD lets package net do the listening, because it handles dual stack and the system's
// backlog, and takes the socket away from its poller by duplicating it.
func listenFD(addr string) (fd int, bound string, err error) {
	nl, err := net.Listen("tcp", addr)
	if err != nil {
		return -1, "", err
	}
	defer nl.Close()
	raw, err := nl.(*net.TCPListener).SyscallConn()
	if err != nil {
		return -1, "", err
	}
	fd = -1
	var dupErr error
	err = raw.Control(func(listening uintptr) {
		fd, dupErr = unix.FcntlInt(listening, unix.F_DUPFD_CLOEXEC, 0)
	})
	return fd, nl.Addr().String(), errors.Join(err, dupErr)
}

// Addr returns the bound "ip:port".
func (ln *Listener) Addr() string { return ln.addr }

// Close stops accepting and frees the port before it returns. Accepted connections stay open. Any
// goroutine may call it.
func (ln *Listener) Close() error {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.fd < 0 {
		return nil
	}
	fd := ln.fd
	err := closeListener(fd)
	ln.fd = -1
	ln.loop.Post(func() { ln.removed(fd) })
	ln.group.forgetListener(ln)
	if err != nil {
		return fmt.Errorf("cannot close listener %s: %w", ln.addr, err)
	}
	return nil
}

func (g *Group) forgetListener(ln *Listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.listeners, ln)
}

// start and removed run on the listener's loop.
func (ln *Listener) start() {
	ln.number = len(ln.loop.listeners)
	ln.loop.listeners = append(ln.loop.listeners, ln)
	ln.watch()
}

func (ln *Listener) watch() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.fd < 0 {
		return
	}
	if err := ln.loop.poller.watch(ln.fd, listenerTag(ln.number), 0, readable); err != nil {
		ln.loop.log.Error("cannot accept connections", "addr", ln.addr, "error", err)
	}
}

func (ln *Listener) removed(fd int) {
	if ln.number >= 0 {
		ln.loop.poller.forget(fd, listenerTag(ln.number))
		ln.loop.listeners[ln.number] = nil
	}
}

// accept takes the connections waiting at a listener and spreads them over the loops.
func (l *Loop) accept(number int) {
	ln := l.listeners[number]
	if ln == nil {
		return
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.fd < 0 {
		return
	}
	begun := l.clock.now()
	if begun < ln.rest && l.group.strained() {
		ln.pause(ln.rest - l.now)
		return
	}
	defer func() { ln.rest = restAfterAccept(begun, l.clock.now()) }()
	for i := range acceptBatch {
		if ln.fd < 0 || i > 0 && l.clock.now()-begun > acceptTime {
			return
		}
		if ln.wrap != nil && !ln.wrap.Ready() {
			ln.pause(acceptBackoff)
			return
		}
		fd, sa, errno := acceptSocket(ln.fd)
		switch errno {
		case 0:
			ln.take(fd, addrPort(sa))
		case unix.EAGAIN:
			return
		case unix.EINTR, unix.ECONNABORTED:
		default:
			ln.backOff(errno)
			return
		}
	}
}

// restAfterAccept returns until when an iteration's accepting from begun to ended rests while newcomers
// wait. Accepting that took much longer than it may was interrupted, and the rest ends soon.
func restAfterAccept(begun, ended time.Duration) time.Duration {
	return ended + newcomersRest*min(ended-begun, 2*acceptTime)
}

// take wraps an accepted socket, if the listener has a Wrapper, and hands it over.
func (ln *Listener) take(fd int, remote netip.AddrPort) {
	setOptions(fd)
	var local netip.AddrPort // read from this socket: the wrapper's descriptor has no address
	if sa, err := unix.Getsockname(fd); err == nil {
		local = addrPort(sa)
	}
	if ln.wrap == nil {
		ln.hand(fd, remote, local, func() {})
		return
	}
	ln.wrap.Wrap(fd, remote, func(fd int, taken func()) {
		if !ln.loop.mail.post(func() { ln.hand(fd, remote, local, taken) }) {
			unix.Close(fd)
			taken()
		}
	})
}

// hand gives a connection to the loop with the fewest, taking turns among equals. It calls taken when
// that loop has it.
func (ln *Listener) hand(fd int, remote, local netip.AddrPort, taken func()) {
	loops := ln.group.loops
	best := loops[(ln.last+1)%len(loops)]
	for i := range loops {
		if l := loops[(ln.last+1+i)%len(loops)]; l.load.Load() < best.load.Load() {
			best = l
		}
	}
	ln.last = best.index
	best.load.Add(1)
	adopt := func() {
		best.adopt(fd, remote, local, ln)
		taken()
	}
	if !best.mail.post(adopt) {
		best.load.Add(-1)
		unix.Close(fd)
		taken()
	}
}

// backOff pauses accepting after an error: the kernel would report the same waiting connection
// again and again.
func (ln *Listener) backOff(err error) {
	l := ln.loop
	if l.now-ln.logged >= acceptLogGap || ln.logged == 0 {
		ln.logged = l.now
		l.log.Error("cannot accept connection", "addr", ln.addr, "error", err)
	}
	ln.pause(acceptBackoff)
}

// pause stops watching the open listener for d. Otherwise connections that wait would end every
// wait of the loop at once. It is called with the lock held.
func (ln *Listener) pause(d time.Duration) {
	l := ln.loop
	if err := l.poller.ignore(ln.fd, listenerTag(ln.number)); err != nil {
		l.log.Error("cannot pause accepting", "addr", ln.addr, "error", err)
	}
	l.After(d, ln.watch)
}

// adopt makes a conn of an accepted socket. load already counts it.
func (l *Loop) adopt(fd int, remote, local netip.AddrPort, ln *Listener) {
	if l.stop {
		l.load.Add(-1)
		unix.Close(fd)
		return
	}
	l.stats.Accepted++
	c := l.newConn(fd, remote)
	c.local = local
	if ln.wrap != nil {
		c.wrapped = ln.wrap.Memory()
	}
	c.armed = readable
	if err := l.poller.watch(fd, int32(fd), c.gen, c.armed); err != nil {
		l.log.Error("cannot accept connection", "error", err)
		c.Close(err)
		return
	}
	c.open(ln.handle)
	c.newcomer, _ = c.handler.(Newcomer)
}

// newConn puts a socket into the loop's table.
func (l *Loop) newConn(fd int, remote netip.AddrPort) *Conn {
	l.lastGen++
	c := &Conn{loop: l, account: l.account, fd: fd, gen: l.lastGen, most: firstRead, maxIn: defaultMax, remote: remote}
	for len(l.conns) <= fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[fd] = c
	return c
}

// open asks accept for the conn's handler.
func (c *Conn) open(accept func(c *Conn) Handler) {
	defer c.loop.recoverConn(c)
	c.handler = accept(c)
	if c.handler == nil {
		c.Close(nil)
		return
	}
	c.flusher, _ = c.handler.(Flusher)
}

// forget closes the conn's socket and removes it from the table.
func (l *Loop) forget(c *Conn) {
	l.conns[c.fd] = nil
	l.poller.forget(c.fd, int32(c.fd))
	unix.Close(c.fd)
	c.fd = -1
	l.load.Add(-1)
}

// setOptions sets the socket's options. Without TCP_NODELAY small replies would wait for
// acknowledgements. A socket that refuses an option still works.
func setOptions(fd int) {
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSent)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, keepIdle, keepAlive)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAlive/3)
}

// addrPort converts an address, IPv4 in IPv6 to plain IPv4. The result is zero for anything but
// TCP.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}
