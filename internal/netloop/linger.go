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

// linger ends a conn whose output is sent and whose peer may still be sending. Closing a
// socket with unread input resets the connection, and the reset overtakes replies that
// the kernel has not delivered yet: a pipelining client would lose the end of what it was
// promised. So only our direction is closed; input is thrown away until the peer, which
// reads the end of file behind our last reply, closes too, or has had lingerTime to do so
// since it received everything. A peer that receives nothing for Config.Stall is given up.
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

// isQuiet reports whether the peer has received all and sends nothing: closing at once
// then loses nothing.
func (c *Conn) isQuiet() bool {
	if undelivered(c.fd) > 0 {
		return false
	}
	_, errno := recv(c.fd, c.loop.scratch)
	return errno == unix.EAGAIN
}

// watchLinger ends the lingering in time. left is what was undelivered when it last
// changed, which was at since.
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

// discard throws away what a lingering conn receives. It takes turns with the other
// conns, one read an iteration: the peer may be as fast as it likes.
func (c *Conn) discard() {
	n, errno := recv(c.fd, c.loop.scratch)
	if n > 0 || errno == unix.EAGAIN || errno == unix.EINTR {
		return
	}
	c.Close(c.err)
}
