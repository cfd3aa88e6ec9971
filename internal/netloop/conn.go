package netloop

import (
	"container/list"
	"errors"
	"net/netip"
	"time"
)

var (
	// ErrSlowReader closes a connection whose peer does not read its replies, so that they pile up.
	ErrSlowReader = errors.New("peer does not read its replies")
	// ErrClosed closes the connections that are still open when their Group closes.
	ErrClosed = errors.New("event loops are closed")
)

// Handler receives the events of one Conn, always on the thread of the conn's loop.
type Handler interface {
	// OnData receives all unconsumed input and returns how many leading bytes it consumed. in
	// belongs to the loop: it is valid only during the call, and the handler may change it. OnData
	// is called again when more input arrives, or after Conn.Wake. It may call any method of any
	// Conn of its loop, including Close of its own.
	OnData(c *Conn, in []byte) int
	// OnClose is called exactly once, after the socket is closed, and never from inside Close. err
	// is nil after an orderly local close, io.EOF when the peer finished, otherwise the reason
	// (ErrSlowReader, ErrClosed, a system call's error...).
	OnClose(c *Conn, err error)
}

// Flusher is a Handler that manages its output itself. OnFlush is called at the end of an iteration
// in which MarkDirty was called, and when the socket accepts bytes again after a short TryWrite.
// Flushers are flushed before all other conns, so that requests leave before replies.
type Flusher interface {
	OnFlush(c *Conn)
}

// HalfCloser is a Handler that answers a peer which has finished sending. Without OnEOF such a conn
// is closed (io.EOF) once its output is sent. When OnEOF returns true, the conn stays open for
// output, and the handler closes it.
type HalfCloser interface {
	OnEOF(c *Conn) bool
}

// Waiter is a Handler whose conns may wait for something that their peers do not send. While one does, a
// peer that finishes sending has left: its conn is closed (io.EOF) once its output is sent, also if there
// is so much input that reading has stopped before its end. Only Linux reports that, and only for the
// conn's own socket: of a TLS client, the bridge notices while nobody reads what it has passed on (package tlsbridge).
type Waiter interface {
	IsWaiting(c *Conn) bool
}

// readStop is a set of reasons not to read from a conn.
type readStop uint8

const (
	stopHandler readStop = 1 << iota // Pause
	stopOutput                       // unsent output is above the soft limit
	stopInput                        // unconsumed input has reached its maximum
	stopEnd                          // end of file was read, or the conn closes after flushing
	stopNew                          // it waits behind established conns, see waitsAsNew
)

// Conn is one non-blocking socket, which belongs to one loop for life. Only the thread of that loop
// may call its methods. On a closed Conn they all do nothing.
type Conn struct {
	loop    *Loop
	account *Account
	other   int // bytes in account that are not in in and out
	wrapped int // the permanent part of other: the Wrapper's
	handler Handler
	flusher Flusher // handler, if it is a Flusher
	// newcomer is the handler of an accepted conn that is still new; otherwise nil.
	newcomer Newcomer
	urgent   uint8         // how often it was read from as urgent
	place    *list.Element // in loop.newcomers, while it waits there
	fd       int           // -1 when closed
	gen      int32         // distinguishes this conn's events from those of an earlier conn with the same fd
	armed    uint32        // events that the poller reports; set to interest() at the end of each iteration

	stops     readStop
	closed    bool
	finishing bool // close with err when the output is sent
	lingering bool // our direction is closed, see linger
	ended     bool // the peer's direction is closed: end of file was read
	dirty     bool // on one of the loop's dirty lists
	woken     bool // OnData must be called; on the loop's woken list
	yielded   bool // and before more is read
	rearming  bool // on the loop's rearm list
	streams   bool // see Stream

	most int32 // what the next read may return, see pace

	want  int     // OnData is not called with less input
	maxIn int     // reading stops at this much unconsumed input
	in    []byte  // input kept from earlier reads, consumed up to inOff; nil: none
	taken *Buffer // was that, and OnData has not returned; nil: none was
	inOff int

	out     []byte // output, sent up to outOff; nil: none
	outOff  int
	outHint int  // recent amount of output: the size of the next buffer
	overrun bool // output was added while above the soft limit

	inserts  []insert // output that is not in out, in order
	inserted int      // unsent bytes of inserts
	accepted int64    // bytes of inserts that the socket has accepted so far

	received, sent uint64 // bytes, see Traffic

	blocked    int           // 1 + index in the loop's blocked list; 0: not blocked
	progressed time.Duration // when the socket last accepted a byte, while blocked

	err           error // for OnClose
	dial          *dial // not nil while connecting
	remote, local netip.AddrPort
}

// Traffic returns how many bytes the conn has read and written.
func (c *Conn) Traffic() (received, sent uint64) { return c.received, c.sent }

// Unfinished returns how many bytes are kept of a request that the peer has not sent whole. The handler has said that
// it wants more.
func (c *Conn) Unfinished() int {
	if kept := len(c.in) - c.inOff; c.want > kept && c.stops == 0 {
		return kept
	}
	return 0
}

// Loop returns the loop that owns the conn.
func (c *Conn) Loop() *Loop { return c.loop }

// RemoteAddr returns the peer's ip:port.
func (c *Conn) RemoteAddr() string { return c.remote.String() }

// RemoteIP returns the peer's address, invalid for anything but TCP.
func (c *Conn) RemoteIP() netip.Addr { return c.remote.Addr() }

// LocalAddr returns our own ip:port.
func (c *Conn) LocalAddr() string { return c.local.String() }

// FD returns the socket's descriptor, -1 when closed.
func (c *Conn) FD() int { return c.fd }

// Pause stops reading until Resume. Pausing twice is the same as once. A paused conn still closes
// when its peer resets it.
func (c *Conn) Pause() { c.stopReading(stopHandler) }

// Resume undoes Pause. It offers the kept input again.
func (c *Conn) Resume() { c.allowReading(stopHandler) }

func (c *Conn) stopReading(s readStop) {
	if c.stops&s == 0 {
		c.stops |= s
		c.rearmLater()
	}
}

// allowReading removes a reason not to read. The handler may have stopped in the middle of its
// input for that reason, and nothing new may ever arrive, so the kept input is offered again.
func (c *Conn) allowReading(s readStop) {
	if c.stops&s == 0 {
		return
	}
	c.stops &^= s
	c.rearmLater()
	if len(c.in) > c.inOff {
		c.Wake()
	}
}

// interest returns the events that the system should report. It always reports errors and hangups.
func (c *Conn) interest() uint32 {
	var events uint32
	if (c.stops == 0 || c.lingering) && c.dial == nil {
		events |= readable
	}
	if c.stops&stopInput != 0 && !c.finishing && c.isWaiting() {
		events |= peerLeft
	}
	if c.blocked > 0 || c.dial != nil {
		events |= writable
	}
	return events
}

// rearmLater schedules a comparison of interest with armed for the end of the iteration, so that
// alternating Pause and Resume cost no system call.
func (c *Conn) rearmLater() {
	if !c.rearming && !c.closed {
		c.rearming = true
		c.loop.rearm = append(c.loop.rearm, c)
	}
}

// Close closes the socket at once; unsent output is lost. OnClose(err) follows before the iteration
// ends. The conn's buffers live until then, so a handler may call Close in the middle of OnData.
func (c *Conn) Close(err error) {
	if c.closed {
		return
	}
	c.Stream(false)
	c.closed = true
	c.err = err
	c.unblock()
	if c.place != nil {
		c.leaveNewcomers()
	}
	c.loop.forget(c)
	c.loop.closing = append(c.loop.closing, c)
}

// CloseAfterFlush stops reading and closes the conn when its output is sent, or when the peer has
// accepted none of it for Config.Stall.
func (c *Conn) CloseAfterFlush() { c.finish(nil) }

func (c *Conn) finish(err error) {
	if c.finishing || c.closed {
		return
	}
	c.finishing = true
	c.err = err
	c.stopReading(stopEnd)
	c.MarkDirty()
}
