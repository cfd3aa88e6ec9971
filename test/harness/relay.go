package harness

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// relay accepts connections at the address that a node advertises and passes them on to the node.
// It can delay and cut them as a bad network does.
type relay struct {
	node string
	mute atomic.Bool // the node gets requests, and its replies are dropped
	Slow atomic.Bool // replies are sent in small pieces, with pauses

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool // no connection stays open
}

// relayHost is another address of this machine.
const relayHost = "127.0.0.2"

// relayed starts a relay for a node that has not been started yet.
func relayed(t testing.TB, m *Member) *relay {
	t.Helper()
	_, port, _ := net.SplitHostPort(m.Addr)
	l, err := net.Listen("tcp", net.JoinHostPort(relayHost, port))
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{node: m.Addr, conns: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { r.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.cut()
		serving.Wait()
	})
	return r
}

// serve passes bytes between a client and the node until one of them closes.
func (r *relay) serve(client net.Conn) {
	node, err := net.DialTimeout("tcp", r.node, time.Second)
	if err != nil {
		client.Close()
		return
	}
	ends := [2]net.Conn{client, node}
	r.mu.Lock()
	for _, c := range ends {
		if r.conns[c] = true; r.closed { // cut was here before
			c.Close()
		}
	}
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(node, client)
		node.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(replies{r, client}, node)
		client.Close()
	})
	both.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range ends {
		delete(r.conns, c)
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
}

// LoseReplies drops the replies of the node for up to 40 ms and then cuts its connections: the node
// has executed commands, and their clients do not know it.
func (r *relay) LoseReplies(rng *rand.Rand) {
	r.mute.Store(true)
	SleepUpTo(40*time.Millisecond, rng)
	r.cut()
	r.mute.Store(false)
}

// replies writes a node's replies to a client.
type replies struct {
	*relay
	client net.Conn
}

func (w replies) Write(b []byte) (int, error) {
	if w.mute.Load() {
		return len(b), nil
	}
	if !w.Slow.Load() {
		return w.client.Write(b)
	}
	for sent := 0; sent < len(b); {
		time.Sleep(time.Millisecond)
		n, err := w.client.Write(b[sent:min(len(b), sent+4096)])
		if sent += n; err != nil {
			return sent, err
		}
	}
	return len(b), nil
}
