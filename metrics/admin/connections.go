package admin

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/lobby"
)

const (
	mostConnections  = 512 // open ones that are not being answered, at a time
	shareConnections = 256 // of these, from one source
	mostAnswered     = 256 // connections whose requests are being answered, at a time
	shareAnswered    = 128 // of these, from one source
)

// bounded is a listener with a limited number of open connections. A new one displaces the oldest,
// of its own source first, so the port always answers. Connections whose request has arrived are
// counted apart: those who only connect do not displace them.
type bounded struct {
	net.Listener
	open, answered *lobby.Lobby
}

func newBounded(l net.Listener) bounded {
	return bounded{
		Listener: l,
		open:     lobby.New(mostConnections, shareConnections),
		answered: lobby.New(mostAnswered, shareAnswered),
	}
}

func (b bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &counted{Conn: conn, of: b}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		c.from = a.AddrPort().Addr()
	}
	c.enter(b.open)
	return c, nil
}

// counted is an open connection.
type counted struct {
	net.Conn
	of   bounded
	from netip.Addr

	mu     sync.Mutex
	guest  *lobby.Guest
	closed bool
}

// enter makes the connection a guest of a lobby, and of no other.
func (c *counted) enter(l *lobby.Lobby) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guest.Leave()
	if !c.closed {
		c.guest = l.Enter(c.from, func() { _ = c.Conn.Close() })
	}
}

func (c *counted) Close() error {
	c.mu.Lock()
	c.closed = true
	c.guest.Leave()
	c.mu.Unlock()
	return c.Conn.Close()
}

// connection is the key of a request's *counted.
type connection struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, c)
}

// counting counts the connections of the requests that serve answers apart from the others, until
// uncount.
func counting(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connection{}).(*counted); ok {
			c.enter(c.of.answered)
		}
		serve.ServeHTTP(w, r)
	})
}

// uncount is an http.Server's ConnState: a connection whose reply is sent is like the others again.
// When the handler returns, the end of the reply is not sent yet.
func uncount(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*counted); ok && state == http.StateIdle {
		c.enter(c.of.open)
	}
}
