package netloop

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// scratchSize is the most that one read returns: a conn may take that much before the next one
	// has its turn. firstRead is the most of a conn's first read, and the least that pace comes down to.
	scratchSize = 256 << 10
	firstRead   = 32 << 10
	// smallKept is the largest kept input that is moved in front of the next read.
	smallKept = 16 << 10
	// minRead is the least room for a read into a conn's own buffer.
	minRead    = 16 << 10
	defaultMax = 1<<30 + 64<<10 // see SetMaxInput
	// reachAhead is how long a large buffer may grow without being copied, whatever the handler wants: of
	// a request with many short arguments it wants the next one only.
	reachAhead = 128 << 20
)

// Wake makes the loop call OnData again with the kept input, in this iteration or the next: for a
// handler that stopped early. Without kept input it does nothing. While too much output is unsent,
// the call waits until there is less.
func (c *Conn) Wake() {
	if c.woken || c.closed {
		return
	}
	c.woken = true
	c.loop.woken = append(c.loop.woken, c)
}

// Yield is Wake for a handler whose turn is over (Turn): nothing more is read before it has its next one.
func (c *Conn) Yield() {
	c.yielded = true
	c.Wake()
}

// Want is a hint from inside OnData: do not call OnData again with less than n bytes of input (see
// resp.Parser.Need).
func (c *Conn) Want(n int) { c.want = n }

// SetMaxInput sets how much unconsumed input stops reading, in bytes (0: the default, 1 GiB and 64
// KiB). At that point OnData is called whatever the handler wanted; if it consumes nothing then,
// only Wake makes the conn continue.
func (c *Conn) SetMaxInput(n int) {
	if n == 0 {
		n = defaultMax
	}
	c.maxIn = n
}

// Stream says whether the handler passes much input on as it arrives. If it does, reads are
// smaller, because other conns wait while the loop handles such input.
func (c *Conn) Stream(on bool) {
	if c.streams == on || c.closed {
		return
	}
	c.streams = on
	if on {
		c.loop.streaming++
	} else {
		c.loop.streaming--
	}
}

// receive makes one read and offers the input. hangup says that the system reported an error or a
// hangup.
func (c *Conn) receive(hangup bool) {
	if c.lingering {
		c.discard()
		return
	}
	l := c.loop
	kept := len(c.in) - c.inOff
	if c.yielded && kept > 0 && !hangup {
		return // what the handler left comes first, and does not grow
	}
	own := kept > smallKept
	var buf []byte
	if own {
		if buf = c.room(); buf == nil {
			c.starve()
			return
		}
	} else {
		// The common case. A pipelining client's last command is usually cut in the middle. With
		// that piece in front, the next read is again as long as the scratch buffer, and the
		// handler sees one run of bytes.
		copy(l.scratch, c.in[c.inOff:])
		buf = l.scratch[:kept]
	}
	most := int(c.most)
	if c.streams {
		most = min(most, turn(l.streaming))
	}
	n, errno := recv(c.fd, buf[kept:min(cap(buf), kept+most)])
	l.stats.Reads++
	switch {
	case errno == 0 && n > 0:
		l.stats.BytesIn += uint64(n)
		c.account.received += uint64(n)
		c.received += uint64(n)
		if n < firstRead {
			c.settle(buf[:kept+n], own)
			break
		}
		began := l.clock.now()
		c.settle(buf[:kept+n], own)
		c.pace(n, l.clock.now()-began)
	case errno == 0:
		c.endOfInput()
	case errno == unix.EAGAIN || errno == unix.EINTR:
		if hangup {
			c.Close(c.socketError())
		}
	default:
		c.Close(os.NewSyscallError("recv", errno))
	}
}

// pace decides how long the next read may be: half of the last one if the handler took more than a turn for
// that, and twice as long if it took less than half of one. 256 KiB are a piece of one value, or thousands of
// short commands, which keep the loop from all others for milliseconds.
func (c *Conn) pace(n int, took time.Duration) {
	switch {
	case took > TurnTime:
		c.most = int32(max(n/2, firstRead))
	case took < TurnTime/2 && n >= int(c.most):
		c.most = int32(min(2*n, scratchSize))
	}
}

// room returns the kept input at the front of a buffer with space for a read behind it, or nil if
// there is no memory for that.
func (c *Conn) room() []byte {
	live := c.in[c.inOff:]
	// Of a request whose length is known, the last bytes fill the buffer: it does not double for them.
	if left := cap(live) - len(live); left >= minRead || left > 0 && c.want > len(live) && c.want <= cap(live) {
		return live
	}
	// The handler's Want bounds the doubling, but is never trusted alone: the peer has to send half
	// of it first.
	need, reach := len(live)+minRead, 2*len(live)
	if c.want > len(live) {
		reach = min(reach, c.want)
	}
	size := grownSize(need, reach)
	if reach > 1<<maxKeptClass {
		reach = max(reach, c.want, reachAhead) // addresses only: extending into them copies nothing
	}
	if cap(c.in) >= size && c.inOff >= len(live) {
		// The two do not overlap, and at least as many bytes were consumed since the last move.
		copy(c.in[:len(live)], live)
		c.in, c.inOff = c.in[:len(live)], 0
		return c.in
	}
	if longer := c.extend(c.in, c.inOff+size); longer != nil {
		c.in = longer
		return c.in[c.inOff:]
	}
	grown := c.replace(c.in, c.inOff, 0, size, reach)
	if grown == nil {
		if grown = c.replace(c.in, c.inOff, 0, size, 2*len(live)); grown == nil {
			return nil
		}
	}
	c.in, c.inOff = grown, 0
	return grown
}

// settle offers in to the handler and keeps what the handler leaves. own says that in is the conn's
// own buffer rather than the scratch buffer.
func (c *Conn) settle(in []byte, own bool) {
	rest := c.offer(in)
	switch {
	case own && c.in == nil: // the handler took it over
		c.keep(rest)
	case len(rest) == 0:
		c.dropInput()
	case own:
		// in begins at inOff of c.in, and may be longer than c.in was.
		c.in = c.in[:c.inOff+len(in)]
		c.inOff += len(in) - len(rest)
	default:
		c.keep(rest)
	}
	c.doneOffering()
	if len(rest) >= c.maxIn {
		c.stopReading(stopInput)
	} else if c.stops&stopInput != 0 {
		c.allowReading(stopInput)
	}
}

// keep copies input from the scratch buffer into the conn's own.
func (c *Conn) keep(rest []byte) {
	if cap(c.in) < len(rest) {
		c.dropInput()
		if c.in = c.lend(len(rest), 0); c.in == nil {
			c.starve()
			return
		}
	}
	c.in, c.inOff = append(c.in[:0], rest...), 0
}

func (c *Conn) dropInput() {
	c.giveBack(c.in)
	c.in, c.inOff = nil, 0
}

// offer calls OnData if the handler can be expected to make progress, and returns what it did not
// consume.
func (c *Conn) offer(in []byte) []byte {
	if c.closed || len(in) < min(c.want, c.maxIn) {
		return in
	}
	c.want = 0
	c.woken, c.yielded = false, false
	return in[c.callData(in):]
}

func (c *Conn) callData(in []byte) (consumed int) {
	defer c.loop.recoverConn(c)
	n := c.handler.OnData(c, in)
	if n < 0 || n > len(in) {
		panic(fmt.Sprintf("BUG: OnData consumed %d of %d bytes", n, len(in)))
	}
	return n
}

// offerKept calls OnData with the kept input, if there is any and nothing forbids the call now.
func (c *Conn) offerKept() {
	if c.closed || c.finishing || c.stops&stopOutput != 0 || len(c.in) == c.inOff {
		return
	}
	c.settle(c.in[c.inOff:], true)
}

// endOfInput handles the end of the peer's input. All input has been offered, or is offered now.
func (c *Conn) endOfInput() {
	c.ended = true
	c.stopReading(stopEnd)
	if c.woken {
		c.offerKept()
	}
	switch {
	case c.closed || c.finishing || c.keepsOpen():
	case c.Queued() > 0:
		c.finish(io.EOF)
	default:
		c.Close(io.EOF)
	}
}

// peerHasLeft handles the end of the peer's input behind more than is read now. The peer may still
// read: it gets the output that is there, and what the kernel has not delivered, see linger.
func (c *Conn) peerHasLeft() {
	if c.isWaiting() {
		c.finish(io.EOF)
	} else {
		c.rearmLater() // or the system would report it for ever
	}
}

// HasLeft asks the system whether the peer has closed the connection, or its direction of it, also in front
// of unread input where the system tells that.
func (c *Conn) HasLeft() bool { return c.closed || c.finishing || peerHasLeft(c.fd) }

func (c *Conn) isWaiting() (waits bool) {
	w, ok := c.handler.(Waiter)
	if !ok {
		return false
	}
	defer c.loop.recoverConn(c)
	return w.IsWaiting(c)
}

func (c *Conn) keepsOpen() (open bool) {
	h, ok := c.handler.(HalfCloser)
	if !ok {
		return false
	}
	defer c.loop.recoverConn(c)
	return h.OnEOF(c)
}

// socketError returns why the system reported an error or a hangup.
func (c *Conn) socketError() error {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err != nil:
		return os.NewSyscallError("getsockopt", err)
	case code != 0:
		return os.NewSyscallError("recv", unix.Errno(code))
	}
	return io.EOF
}
