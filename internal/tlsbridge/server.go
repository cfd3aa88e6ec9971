package tlsbridge

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	handshakeTime = 5 * time.Second
	// maxLeaving bounds the connections that wait for peers to take their last bytes; beyond it no
	// others are accepted.
	maxLeaving = 4096
)

// Server wraps what a listener accepts.
type Server struct {
	certificates *Certificates
	log          *slog.Logger
	patience     time.Duration   // with a handshake
	longest      time.Duration   // see bridge
	ctx          context.Context // of the handshakes
	cancel       context.CancelFunc
	sending      sync.WaitGroup // handshakes, and connections to which something may still be sent
	door         *doorway
	leaving      atomic.Int64 // connections whose loop has closed
	accepted     atomic.Int64
	failed       atomic.Int64
}

// NewServer returns a Server with the certificates c, which the caller keeps fresh.
func NewServer(c *Certificates, log *slog.Logger) *Server {
	s := &Server{certificates: c, log: log, patience: handshakeTime, longest: takeTime, door: newDoorway()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Drain ends handshakes and waits until everything that loops wrote is sent, or ctx ends: otherwise
// the end of the process would cut replies. Call it after the loops have closed; Wrap must not be
// called any more.
func (s *Server) Drain(ctx context.Context) error {
	s.door.close()
	s.cancel()
	sent := make(chan struct{})
	go func() {
		s.sending.Wait()
		close(sent)
	}()
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot send all to TLS clients: %w", ctx.Err())
	}
}

// Ready reports whether another connection may be wrapped now.
func (s *Server) Ready() bool {
	return s.door.ready() && s.leaving.Load() < maxLeaving
}

// Memory returns how many bytes an idle connection takes: measured with a thousand of them,
// including garbage of the Go heap.
func (s *Server) Memory() int { return 48 << 10 }

// Stats returns how many handshakes succeeded, and how many failed.
func (s *Server) Stats() (accepted, failed int64) { return s.accepted.Load(), s.failed.Load() }

// CertificateEnd returns the time until which the certificate in use is valid.
func (s *Server) CertificateEnd() time.Time { return s.certificates.now.Load().cert.Leaf.NotAfter }

// RestWhile has handshakes rest while strained reports true, each for three times as long as it has
// computed, so that connected clients come first. Call it before Wrap.
func (s *Server) RestWhile(strained func() bool) { s.door.strained = strained }

// Wrap takes an accepted socket, shakes hands in the background, and gives the descriptor of the
// plain side. Until a loop has taken it, the connection counts among its source's handshakes. If the
// handshake fails, or too many of the same source wait for theirs, Wrap closes the socket and does
// nothing else.
func (s *Server) Wrap(fd int, remote netip.AddrPort, give func(fd int, taken func())) {
	s.door.enter(remote.Addr(), func(h *handshake) {
		s.sending.Add(1)
		go s.serve(h, fd, remote, give)
	}, func() {
		s.failed.Add(1)
		_ = syscall.Close(fd)
	})
}

func (s *Server) serve(h *handshake, fd int, remote netip.AddrPort, give func(fd int, taken func())) {
	b, far, err := s.shake(h, fd)
	if err != nil {
		s.door.leave(h)
		s.failed.Add(1)
		s.sending.Done()
		s.log.Debug("TLS handshake failed", "remote", remote, "error", err)
		return
	}
	s.accepted.Add(1)
	b.longest = s.longest
	give(far, func() { s.door.leave(h) })
	b.run(&s.leaving, s.sending.Done)
}

func (s *Server) shake(h *handshake, fd int) (b *bridge, far int, err error) {
	c, err := connOf(fd)
	if err != nil {
		return nil, -1, err
	}
	g := &gate{Conn: c, handshake: h}
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	t := tls.Server(g, s.certificates.server)
	err = t.HandshakeContext(ctx)
	g.end()
	if err != nil {
		_ = c.Close()
		return nil, -1, err
	}
	return join(t, c)
}

// join makes a bridge of a connection after its handshake. socket is the one below it.
func join(t *tls.Conn, socket net.Conn) (b *bridge, far int, err error) {
	near, far, err := pair()
	if err != nil {
		_ = socket.Close()
		return nil, -1, err
	}
	return &bridge{outer: t, socket: socket, inner: near}, far, nil
}
