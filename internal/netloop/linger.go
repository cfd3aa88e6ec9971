package netloop

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	lingerTick = 50 * time.Millisecond
	// lingerTime is how long a peer that has received everything may take to close.
	lingerTime = time.Second
)

// linger ends a conn whose output is sent and whose peer may still be sending. Closing a socket
// with unread input resets the connection, and the reset overtakes replies that the kernel has not
// delivered yet: a pipelining client would lose its last replies. So linger closes only our
// direction and discards input until the peer, which reads the end of file behind our last reply,
// closes too, or has had lingerTime to do so since it received everything. A peer that receives
// nothing for Config.Stall is reset.
func (c *Conn) linger() {
	if c.ended || c.isQuiet() || unix.Shutdown(c.fd, unix.SHUT_WR) != nil {
		c.Close(c.err)
		return
	}
	c.lingering = true
	c.dropInput()
	c.rearmLater()
	c.watchLinger(undelivered(c.fd), c.loop.now)
}

// isQuiet reports whether the peer has received everything and sends nothing: closing at once then
// loses nothing.
func (c *Conn) isQuiet() bool {
	if undelivered(c.fd) > 0 {
		return false
	}
	_, errno := recv(c.fd, c.loop.scratch)
	return errno == unix.EAGAIN
}

// watchLinger ends the lingering in time. left is the number of undelivered bytes when it last
// changed, at since.
func (c *Conn) watchLinger(left int, since time.Duration) {
	c.loop.After(lingerTick, func() {
		if c.closed {
			return
		}
		if now := undelivered(c.fd); now != left {
			left, since = now, c.loop.now
		}
		switch waited := c.loop.now - since; {
		case left == 0 && waited >= lingerTime:
			c.Close(c.err)
		case left > 0 && waited >= c.loop.cfg.Stall:
			c.reset(c.err)
		default:
			c.watchLinger(left, since)
		}
	})
}

// discard throws away what a lingering conn receives, one read an iteration. So other conns have
// their turns, however fast the peer sends.
func (c *Conn) discard() {
	n, errno := recv(c.fd, c.loop.scratch)
	if n > 0 || errno == unix.EAGAIN || errno == unix.EINTR {
		return
	}
	c.Close(c.err)
}
