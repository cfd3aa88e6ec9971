package netloop

import (
	"errors"
	"net/netip"
	"time"
)

var (
	// ErrSlowReader closes a connection whose peer lets its replies pile up.
	ErrSlowReader = errors.New("peer does not read its replies")
	// ErrClosed closes the connections that are still open when their Group closes.
	ErrClosed = errors.New("event loops are closed")
)

// Handler receives what happens on one Conn, always on the thread of the conn's loop.
type Handler interface {
	// OnData is given all unconsumed input, and returns how many leading bytes it
	// consumed. in is the loop's: it is valid only during the call, and the handler may
	// change it. OnData is called again when more arrives, or after Conn.Wake. It may
	// call any method of any Conn of its loop, including Close on its own.
	OnData(c *Conn, in []byte) int
	// OnClose is called exactly once, after the socket is gone, and never from inside
	// Close. err is nil after an orderly local close, io.EOF when the peer finished,
	// otherwise the reason (ErrSlowReader, ErrClosed, a system call's error...).
	OnClose(c *Conn, err error)
}

// Flusher is a Handler that manages its output itself. OnFlush is called at the end of
// an iteration in which MarkDirty was called, and when the socket takes bytes again
// after a short TryWrite. Flushers come before all other conns, so that requests are on
// their way before replies.
type Flusher interface {
	OnFlush(c *Conn)
}

// HalfCloser is a Handler that answers a peer which has finished sending. Without it
// such a conn is closed (io.EOF) when its output is sent. When OnEOF returns true the
// conn stays open for output, and the handler closes it.
type HalfCloser interface {
	OnEOF(c *Conn) bool
}

// hold is a set of reasons not to read from a conn.
type hold uint8

const (
	holdHandler hold = 1 << iota // Pause
	holdOutput                   // unsent output is above the soft limit
	holdInput                    // unconsumed input has reached its maximum
	holdEnd                      // end of file was read, or the conn is to be closed after flushing
)

// Conn is one non-blocking socket, owned by one loop for life. Its methods may be
// called only on the thread of that loop. All are safe on a closed Conn: they do
// nothing.
type Conn struct {
	loop    *Loop
	account *Account
	other   int // bytes in account that are not of in and out
	wrapped int // what of other is always there: the Wrapper's
	handler Handler
	flusher Flusher // handler, if it is one
	fd      int     // -1 when closed
	gen     int32   // tells this conn's events from those of an earlier one with the same fd
	armed   uint32  // events asked for; follows interest() at the end of each iteration

	holds     hold
	closed    bool
	finishing bool // close with err when the output is sent
	lingering bool // our direction is closed, see linger
	ended     bool // the peer's direction is closed: end of file was read
	dirty     bool // on one of the loop's dirty lists
	woken     bool // OnData is owed; on the loop's woken list
	rearming  bool // on the loop's rearm list
	streams   bool // see Stream

	want  int    // OnData is not called before this much input is there
	maxIn int    // with this much unconsumed input, reading stops
	in    []byte // input kept from earlier reads, consumed up to inOff; nil when there is none
	inOff int

	out     []byte // output, sent up to outOff; nil when there is none
	outOff  int
	outHint int  // how much output there was lately: the size of the next buffer
	overrun bool // output was added while above the soft limit

	inserts  []insert // what of the output is not in out, in order
	inserted int      // unsent bytes of them

	blocked    int           // 1 + index in the loop's blocked list; 0: not blocked
	progressed time.Duration // when the socket last took a byte, while blocked

	err           error // for OnClose
	dial          *dial // not nil while connecting
	remote, local netip.AddrPort
	user          any
}

// Loop returns the loop that owns the conn.
func (c *Conn) Loop() *Loop { return c.loop }

// RemoteAddr returns the peer's ip:port.
func (c *Conn) RemoteAddr() string { return c.remote.String() }

// LocalAddr returns our own ip:port.
func (c *Conn) LocalAddr() string { return c.local.String() }

// FD returns the socket's descriptor, -1 when closed.
func (c *Conn) FD() int { return c.fd }

// User returns what SetUser stored.
func (c *Conn) User() any { return c.user }

// SetUser stores a value for the caller's own use.
func (c *Conn) SetUser(v any) { c.user = v }

// Pause stops reading until Resume. Idempotent. A paused conn is still closed when its
// peer resets it.
func (c *Conn) Pause() { c.hold(holdHandler) }

// Resume undoes Pause. Input that is already there is offered again.
func (c *Conn) Resume() { c.release(holdHandler) }

func (c *Conn) hold(h hold) {
	if c.holds&h == 0 {
		c.holds |= h
		c.rearmLater()
	}
}

// release removes a reason not to read. The handler may have stopped in the middle of
// its input because of it, and nothing new may ever arrive: so the input is offered
// again.
func (c *Conn) release(h hold) {
	if c.holds&h == 0 {
		return
	}
	c.holds &^= h
	c.rearmLater()
	if len(c.in) > c.inOff {
		c.Wake()
	}
}

// interest is what the system should report. It always reports errors and hangups.
func (c *Conn) interest() uint32 {
	var events uint32
	if (c.holds == 0 || c.lingering) && c.dial == nil {
		events |= readable
	}
	if c.blocked > 0 || c.dial != nil {
		events |= writable
	}
	return events
}

// rearmLater compares interest with what is armed at the end of the iteration: Pause
// and Resume in turn cost no system call.
func (c *Conn) rearmLater() {
	if !c.rearming && !c.closed {
		c.rearming = true
		c.loop.rearm = append(c.loop.rearm, c)
	}
}

// Close closes the socket at once; unsent output is lost. OnClose(err) follows before
// the iteration ends. The conn's buffers live until then, so that Close is allowed in
// the middle of OnData.
func (c *Conn) Close(err error) {
	if c.closed {
		return
	}
	c.Stream(false)
	c.closed = true
	c.err = err
	c.unblock()
	c.loop.forget(c)
	c.loop.closing = append(c.loop.closing, c)
}

// CloseAfterFlush stops reading, and closes when the output is sent (or the peer takes
// none of it for Config.Stall).
func (c *Conn) CloseAfterFlush() { c.finish(nil) }

func (c *Conn) finish(err error) {
	if c.finishing || c.closed {
		return
	}
	c.finishing = true
	c.err = err
	c.hold(holdEnd)
	c.MarkDirty()
}
