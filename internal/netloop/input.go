package netloop

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// scratchSize is the most that one read takes: what one conn may do before the next
	// has its turn.
	scratchSize = 256 << 10
	// smallKept is up to which size kept input is moved in front of the next read.
	smallKept = 16 << 10
	// minRead is the least room for a read into a conn's own buffer.
	minRead    = 16 << 10
	defaultMax = 1<<30 + 64<<10 // see SetMaxInput
)

// Wake makes the loop call OnData again with the input kept, in this iteration or the
// next: for a handler that stopped early. Without any such input nothing happens. While
// too much output is unsent the call waits until there is less.
func (c *Conn) Wake() {
	if c.woken || c.closed {
		return
	}
	c.woken = true
	c.loop.woken = append(c.loop.woken, c)
}

// Want is a hint from inside OnData: less than n bytes of input are no use, do not call
// before (see resp.Parser.Need).
func (c *Conn) Want(n int) { c.want = n }

// SetMaxInput sets how much unconsumed input stops reading (0: the default, 1 GiB and
// 64 KiB). OnData is called at that point whatever it wanted; when it does not consume
// anything then, only Wake makes the conn go on.
func (c *Conn) SetMaxInput(n int) {
	if n == 0 {
		n = defaultMax
	}
	c.maxIn = n
}

// Stream says that the handler is moving much input on, byte by byte, or does so no
// more. Reads are then smaller: others wait while such input is dealt with.
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
	own := kept > smallKept
	var buf []byte
	if own {
		if buf = c.room(); buf == nil {
			c.starve()
			return
		}
	} else {
		// The common case. A pipelining client's last command is usually cut in the
		// middle: with the piece in front, the next read is again as long as the
		// scratch buffer, and the handler sees one run of bytes.
		copy(l.scratch, c.in[c.inOff:])
		buf = l.scratch[:kept]
	}
	most := scratchSize
	if c.streams {
		most = turn(l.streaming)
	}
	n, errno := recv(c.fd, buf[kept:min(cap(buf), kept+most)])
	l.stats.Reads++
	switch {
	case errno == 0 && n > 0:
		l.stats.BytesIn += uint64(n)
		c.account.received += uint64(n)
		c.settle(buf[:kept+n], own)
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

// room returns the kept input at the front of a buffer with space for a read behind it;
// nil if there is no memory for that.
func (c *Conn) room() []byte {
	live := c.in[c.inOff:]
	if cap(live)-len(live) >= minRead {
		return live
	}
	// What the handler wants bounds the doubling, but is never trusted by itself: the peer
	// has to send half of it first.
	need, reach := len(live)+minRead, 2*len(live)
	if c.want > len(live) {
		reach = min(reach, c.want)
	}
	size := grownSize(need, reach)
	if reach > 1<<maxKeptClass {
		reach = max(reach, c.want) // addresses only: what it is extended to later is not copied
	}
	if cap(c.in) >= size && c.inOff >= len(live) {
		// They cannot overlap, and at least as much was consumed since the last time.
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

// settle offers in to the handler and keeps what it leaves. own: in is the conn's own
// buffer, otherwise the scratch buffer.
func (c *Conn) settle(in []byte, own bool) {
	rest := c.offer(in)
	switch {
	case own && c.in == nil: // taken
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
	if len(rest) >= c.maxIn {
		c.hold(holdInput)
	} else if c.holds&holdInput != 0 {
		c.release(holdInput)
	}
}

// keep copies input that lies elsewhere.
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

// offer calls OnData if the handler can be expected to get further, and returns what it
// did not consume.
func (c *Conn) offer(in []byte) []byte {
	if c.closed || len(in) < min(c.want, c.maxIn) {
		return in
	}
	c.want = 0
	c.woken = false
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

// offerKept calls OnData with the input kept, if there is any and nothing forbids it
// now.
func (c *Conn) offerKept() {
	if c.closed || c.finishing || c.holds&holdOutput != 0 || len(c.in) == c.inOff {
		return
	}
	c.settle(c.in[c.inOff:], true)
}

// endOfInput is called when the peer has finished sending: all input was offered, or is
// offered now if that is owed.
func (c *Conn) endOfInput() {
	c.ended = true
	c.hold(holdEnd)
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
