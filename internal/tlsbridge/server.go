package tlsbridge

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"
)

const (
	handshakeTime = 5 * time.Second
	// maxHandshakes run at a time; who comes meanwhile waits in the listener's queue.
	maxHandshakes = 512
)

// Server wraps what a listener accepts.
type Server struct {
	certificates *Certificates
	log          *slog.Logger
	patience     time.Duration // with a handshake
	running      atomic.Int64  // handshakes
	accepted     atomic.Int64
	failed       atomic.Int64
}

// NewServer serves with certificates that others keep fresh.
func NewServer(c *Certificates, log *slog.Logger) *Server {
	return &Server{certificates: c, log: log, patience: handshakeTime}
}

// Ready says whether another connection may be wrapped now.
func (s *Server) Ready() bool { return s.running.Load() < maxHandshakes }

// Stats is how many handshakes succeeded, and how many did not.
func (s *Server) Stats() (accepted, failed int64) { return s.accepted.Load(), s.failed.Load() }

// Wrap takes an accepted socket, shakes hands in the background, and gives away the descriptor of the plain side. When the
// handshake fails the socket is closed and nothing else happens.
func (s *Server) Wrap(fd int, remote netip.AddrPort, give func(fd int)) {
	s.running.Add(1)
	go func() {
		b, far, err := s.shake(fd)
		s.running.Add(-1)
		if err != nil {
			s.failed.Add(1)
			s.log.Debug("TLS handshake failed", "remote", remote, "error", err)
			return
		}
		s.accepted.Add(1)
		give(far)
		b.run()
	}()
}

func (s *Server) shake(fd int) (b *bridge, far int, err error) {
	c, err := connOf(fd)
	if err != nil {
		return nil, -1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	t := tls.Server(c, s.certificates.server)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, -1, err
	}
	return join(t)
}

// join makes a bridge of a connection that has shaken hands.
func join(t *tls.Conn) (b *bridge, far int, err error) {
	near, far, err := pair()
	if err != nil {
		_ = t.Close()
		return nil, -1, err
	}
	return &bridge{outer: t, inner: near}, far, nil
}
