package tlsbridge

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
)

// Dialer connects to other members.
type Dialer struct{ certificates *Certificates }

// NewDialer returns a Dialer that shows the certificates c, which the caller keeps fresh, and
// requires one of the same CA.
func NewDialer(c *Certificates) *Dialer { return &Dialer{c} }

// Dial connects, for callers that may block.
func (d *Dialer) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return d.dial(ctx, addr)
}

// DialFD connects and returns the descriptor of the plain side, for a loop.
func (d *Dialer) DialFD(ctx context.Context, addr string) (fd int, err error) {
	t, err := d.dial(ctx, addr)
	if err != nil {
		return -1, err
	}
	b, far, err := join(t, t.NetConn())
	if err != nil {
		return -1, err
	}
	go b.run(new(atomic.Int64), func() {})
	return far, nil
}

func (d *Dialer) dial(ctx context.Context, addr string) (*tls.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	t := tls.Client(c, d.certificates.client)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("TLS handshake with %s failed: %w", addr, err)
	}
	return t, nil
}
