package netloop

import (
	"time"

	"golang.org/x/sys/unix"
)

// lingerTime is how long a finished conn waits for its peer to close as well.
const lingerTime = time.Second

// linger ends a conn whose output is sent and whose peer may still be sending. Closing a
// socket with unread input resets the connection, and the reset overtakes replies that
// the kernel has not delivered yet: a pipelining client would lose the end of what it was
// promised. So only our direction is closed; input is thrown away until the peer, which
// reads the end of file behind our last reply, closes too, or lingerTime is over.
func (c *Conn) linger() {
	if c.ended || unix.Shutdown(c.fd, unix.SHUT_WR) != nil {
		c.Close(c.err)
		return
	}
	c.lingering = true
	c.dropInput()
	c.rearmLater()
	c.loop.After(lingerTime, func() { c.Close(c.err) })
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
