package netloop

import (
	"os"

	"golang.org/x/sys/unix"
)

// maxHint bounds, in bytes, the first buffer of a conn, which is lent before the amount of output
// is known.
const maxHint = 64 << 10

// Out returns the output buffer. The handler appends to it and gives it to SetOut before it returns
// to the loop. The buffer may begin with bytes that are already sent: only append. The loop lends
// the buffer and takes it back when all is sent. Without memory for a buffer, Out closes the conn
// and returns nil.
func (c *Conn) Out() []byte {
	if c.out == nil && !c.closed {
		if c.out = c.lend(c.outHint, 0); c.out == nil {
			c.closeStarved()
		}
	}
	return c.out
}

// Grow returns b, which is what Out returned with something appended, with room for at least n more
// bytes. Handlers that append more than a line must call it, because memory that append allocates
// by itself is charged too late. Without memory Grow closes the conn and returns b and false.
func (c *Conn) Grow(b []byte, n int) ([]byte, bool) {
	grown, ok := c.TryGrow(b, n)
	if !ok && !c.closed {
		c.closeStarved()
	}
	return grown, ok
}

// TryGrow is Grow that leaves the conn open.
func (c *Conn) TryGrow(b []byte, n int) ([]byte, bool) {
	if cap(b)-len(b) >= n {
		return b, true
	}
	if c.closed {
		return b, false
	}
	need, reach := len(b)+n, 2*len(b)
	if longer := c.extend(b, grownSize(need, reach)); longer != nil {
		c.out = longer
		return longer, true
	}
	if !sameArray(c.out, b) {
		c.giveBack(c.out)
		c.out = nil
	}
	grown := c.replace(b, c.outOff, c.outOff, grownSize(need, reach), reach)
	if grown == nil {
		grown = c.replace(b, c.outOff, c.outOff, need, 0) // near the end of memory: only what is needed
	}
	if grown == nil {
		return b, false
	}
	c.out = grown
	return grown, true
}

// SetOut replaces the output buffer by b, which is what Out or Grow returned with something
// appended. b then belongs to the conn. It is written once, at the end of the iteration or, without
// memory for others, earlier.
func (c *Conn) SetOut(b []byte) {
	if c.closed {
		return
	}
	if c.Queued() > c.loop.cfg.SoftOut {
		c.overrun = true
	}
	if !sameArray(c.out, b) {
		// append has moved the output into an array of its own.
		own, ok := c.Grow(c.out, len(b)-len(c.out))
		if !ok {
			return
		}
		b = own[:c.outOff+copy(own[c.outOff:len(b)], b[c.outOff:])]
	}
	c.out = b
	c.MarkDirty()
}

func sameArray(a, b []byte) bool {
	return cap(a) > 0 && cap(b) > 0 && &a[:1][0] == &b[:1][0]
}

// Queued returns the number of unsent bytes of output, including inserts.
func (c *Conn) Queued() int { return c.buffered() + c.inserted }

// buffered returns how many of the unsent bytes are in the conn's buffer.
func (c *Conn) buffered() int { return len(c.out) - c.outOff }

// Full reports whether unsent output is above the soft limit. If a handler stops executing then,
// the loop offers it the rest of its input once half of the output is sent. This bounds the output
// that the commands of one read can pile up.
func (c *Conn) Full() bool {
	full := c.Queued() > c.loop.cfg.SoftOut
	if full {
		// Stop reading now: the flush may send all output, and then nothing would end the wait.
		c.stopReading(stopOutput)
	}
	return full
}

// MarkDirty schedules a flush of the conn for the end of this iteration or, when called during the
// flush, of the next one.
func (c *Conn) MarkDirty() {
	if c.dirty || c.closed {
		return
	}
	c.dirty = true
	if c.flusher != nil {
		c.loop.dirtyFlushers = append(c.loop.dirtyFlushers, c)
	} else {
		c.loop.dirtyConns = append(c.loop.dirtyConns, c)
	}
}

// TryWrite is for Flushers: it makes one write of p, which stays the caller's, and returns the
// bytes written. After a short write, OnFlush is called as soon as the socket accepts bytes again;
// until then TryWrite returns 0 without trying. After an error the conn is closed.
func (c *Conn) TryWrite(p []byte) (n int, err error) {
	if c.closed {
		return 0, unix.EPIPE
	}
	if c.blocked > 0 || len(p) == 0 {
		return 0, nil
	}
	n, errno := send(c.fd, p)
	c.loop.stats.Writes++
	switch {
	case errno == 0:
		c.loop.stats.BytesOut += uint64(n)
		c.account.sent += uint64(n)
		c.sent += uint64(n)
	case errno == unix.EAGAIN || errno == unix.EINTR:
		n = 0
	default:
		err = os.NewSyscallError("send", errno)
		c.Close(err)
		return 0, err
	}
	if n < len(p) {
		c.block()
	}
	return n, nil
}

// flush sends the output, in one write.
func (c *Conn) flush() {
	c.dirty = false
	if c.closed || c.lingering {
		return
	}
	if c.blocked == 0 {
		c.flushOut()
		if c.flusher != nil && c.blocked == 0 && !c.closed {
			c.callFlush()
		}
	}
	switch {
	case c.closed:
	case c.finishing && c.blocked == 0 && c.Queued() == 0:
		c.linger()
	default:
		c.limitOutput()
	}
}

func (c *Conn) callFlush() {
	defer c.loop.recoverConn(c)
	c.flusher.OnFlush(c)
}

// flushOut sends the conn's own output buffer and releases what is sent.
func (c *Conn) flushOut() {
	if len(c.inserts) > 0 && !c.flushInserts() {
		return
	}
	queued := c.buffered()
	if queued == 0 {
		c.dropOutput()
		return
	}
	// The next buffer is about as large as the recent ones: it rarely grows, and is rarely too
	// large.
	c.outHint = max(min(queued, maxHint), c.outHint-c.outHint/8)
	n, err := c.TryWrite(c.out[c.outOff:])
	switch {
	case err != nil:
	case n == queued:
		c.dropOutput()
	default:
		c.outOff += n
		// Move the rest down only when more is sent than left: that keeps copying linear.
		if c.outOff > len(c.out)-c.outOff {
			c.out = c.out[:copy(c.out, c.out[c.outOff:])]
			c.outOff = 0
		}
	}
}

func (c *Conn) dropOutput() {
	for len(c.inserts) > 0 {
		c.dropInsert()
	}
	c.giveBack(c.out)
	c.out, c.outOff = nil, 0
}

// limitOutput stops and resumes reading according to the amount of unsent output, and closes a peer
// that lets too much pile up. One reply may exceed the hard limit: only output that is added above
// the soft limit counts as piling up.
func (c *Conn) limitOutput() {
	queued := c.Queued()
	switch {
	case c.buffered() > c.loop.cfg.HardOut && c.overrun:
		c.closeSlow()
	case queued > c.loop.cfg.SoftOut:
		c.stopReading(stopOutput)
	case queued <= c.loop.cfg.SoftOut/2:
		c.overrun = false
		c.allowReading(stopOutput)
	}
}

func (c *Conn) closeStarved() {
	c.loop.stats.Starved++
	c.Close(ErrNoMemory)
}

// closeSlow resets the connection: otherwise the kernel would keep for minutes what the peer does
// not accept.
func (c *Conn) closeSlow() {
	c.loop.stats.SlowReaders++
	c.reset(ErrSlowReader)
}

// reset closes the conn and makes the kernel discard what the peer has not received.
func (c *Conn) reset(err error) {
	if !c.closed {
		_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // not TCP: the kernel keeps nothing
	}
	c.Close(err)
}

// block records that the socket accepts no more. The first byte that it accepts again counts as
// progress.
func (c *Conn) block() {
	c.progressed = c.loop.now
	if c.blocked == 0 {
		c.loop.blocked = append(c.loop.blocked, c)
		c.blocked = len(c.loop.blocked)
		c.rearmLater()
	}
}

// unblock removes the conn from the blocked list; the last conn takes its place.
func (c *Conn) unblock() {
	if c.blocked == 0 {
		return
	}
	list := c.loop.blocked
	last := list[len(list)-1]
	list[c.blocked-1] = last
	last.blocked = c.blocked
	list[len(list)-1] = nil
	c.loop.blocked = list[:len(list)-1]
	c.blocked = 0
	c.rearmLater()
}

// writable handles a socket that accepts bytes again. The flush comes with all others at the end of
// the iteration.
func (c *Conn) writable() {
	c.unblock()
	c.MarkDirty()
}

// closeStalled closes peers that accepted none of their output for Config.Stall.
func (l *Loop) closeStalled() {
	for i := len(l.blocked) - 1; i >= 0; i-- { // backwards: closing moves the last conn into the gap
		if c := l.blocked[i]; l.now-c.progressed >= l.cfg.Stall {
			c.closeSlow()
		}
	}
}
