package tlsbridge

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	bufferSize = 16 << 10 // the most that a TLS record holds
	waitSize   = 1 << 10  // waits for the first bytes of a record
	// takeTime is how long a peer may take nothing of a buffer, and how long it may send after the
	// loop has closed.
	takeTime = 10 * time.Second
)

// bridge moves bytes between a TLS connection and the near end of a socket pair until both
// directions have ended.
type bridge struct {
	outer  *tls.Conn
	socket net.Conn // below outer
	inner  *net.UnixConn
	// longest is for how long the loop may take nothing of a peer that has finished sending; 0: for ever.
	longest time.Duration
}

// run returns when everything is closed. It calls sent when nothing more will be sent. From the
// moment that the loop closes its end, the bridge counts as leaving. run passes the end of one
// direction on, so that a client that has ended its requests still gets replies; an error ends both
// directions.
func (b *bridge) run(leaving *atomic.Int64, sent func()) {
	var both sync.WaitGroup
	both.Go(b.inbound)
	both.Go(func() {
		defer sent()
		b.outbound()
		leaving.Add(1)
	})
	both.Wait()
	leaving.Add(-1)
	b.close()
}

func (b *bridge) close() {
	_ = b.inner.Close()  // twice, after an error
	_ = b.socket.Close() // outbound has said goodbye if there was something to say
}

// buffers are lent only while there are bytes to move: most connections are idle.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func (b *bridge) inbound() {
	first := make([]byte, waitSize)
	buf := first
	for {
		n, err := b.outer.Read(buf)
		if n > 0 {
			if err := b.pass(buf[:n]); err != nil {
				// The loop has closed. Its last output is still on its way; closing with unread
				// input would overtake that output.
				_, _ = io.Copy(io.Discard, b.socket)
				return
			}
		}
		// After much input, expect more.
		switch large := cap(buf) > waitSize; {
		case !large && n == waitSize:
			buf = buffers.Get().(*[bufferSize]byte)[:]
		case large && n < waitSize:
			buffers.Put((*[bufferSize]byte)(buf))
			buf = first
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // with and without a goodbye
			_ = b.inner.CloseWrite()
			return
		default:
			b.close()
			return
		}
	}
}

// errLeft ends a bridge whose peer has left while the loop does not read.
var errLeft = errors.New("the peer has left")

// pass writes to the loop. One that pauses its client reads nothing, and so cannot see that the
// client leaves: whoever has finished sending, and of whom the loop takes nothing for that long,
// has left.
func (b *bridge) pass(bytes []byte) error {
	raw, err := b.inner.SyscallConn()
	if err != nil {
		return err
	}
	n := 0
	if err := raw.Write(func(fd uintptr) (done bool) {
		n, _ = syscall.Write(int(fd), bytes) // without a deadline, as long as the loop reads
		return true
	}); err != nil {
		return err
	}
	if bytes = bytes[max(n, 0):]; len(bytes) == 0 {
		return nil
	}
	defer func() { _ = b.inner.SetWriteDeadline(time.Time{}) }()
	for ; len(bytes) > 0; bytes = bytes[n:] {
		if b.longest > 0 {
			_ = b.inner.SetWriteDeadline(time.Now().Add(b.longest))
		}
		n, err = b.inner.Write(bytes)
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case n == 0 && hasLeft(b.socket):
			b.close()
			return errLeft
		}
	}
	return nil
}

func (b *bridge) outbound() {
	raw, err := b.inner.SyscallConn()
	if err != nil {
		b.close()
		return
	}
	for {
		buf, n, err := receive(raw)
		if n > 0 {
			_ = b.outer.SetWriteDeadline(time.Now().Add(takeTime))
			_, err := b.outer.Write(buf[:n])
			buffers.Put(buf)
			if err != nil {
				if c, ok := b.socket.(*net.TCPConn); ok {
					_ = c.SetLinger(0) // otherwise the kernel would keep for minutes what the client does not take
				}
				b.close()
				return
			}
			// The other goroutine may answer a request for new keys at any time.
			_ = b.outer.SetWriteDeadline(time.Time{})
		}
		if err != nil {
			break
		}
	}
	_ = b.outer.SetDeadline(time.Now().Add(takeTime))
	_ = b.outer.CloseWrite()
	if c, ok := b.socket.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}

// receive waits for bytes and lends a buffer only when there are some. The caller puts the buffer
// back if n is not 0.
func receive(raw syscall.RawConn) (buf *[bufferSize]byte, n int, err error) {
	wait := raw.Read(func(fd uintptr) (done bool) {
		buf = buffers.Get().(*[bufferSize]byte)
		if n, err = syscall.Read(int(fd), buf[:]); n <= 0 {
			buffers.Put(buf)
			n = 0
		}
		return err != syscall.EAGAIN && err != syscall.EINTR
	})
	switch {
	case wait != nil:
		return nil, 0, wait
	case n == 0 && err == nil:
		return nil, 0, io.EOF
	}
	return buf, n, err
}

// pair returns a connection and the non-blocking descriptor of its other end.
func pair() (near *net.UnixConn, far int, err error) {
	fds, err := socketPair()
	if err != nil {
		return nil, -1, os.NewSyscallError("socketpair", err)
	}
	c, err := connOf(fds[0])
	if err != nil {
		_ = syscall.Close(fds[1])
		return nil, -1, err
	}
	return c.(*net.UnixConn), fds[1], nil
}

// connOf makes a connection of a descriptor, which it takes over.
func connOf(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "")
	defer f.Close() // the connection has a duplicate
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot use socket: %w", err)
	}
	return c, nil
}
