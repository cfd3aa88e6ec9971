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

// relay stands before a node, under the address that the node tells others, and can do to
// its connections what a bad network does.
type relay struct {
	node string
	mute atomic.Bool // requests go to the node, its replies go nowhere
	Slow atomic.Bool // replies go in small pieces

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// relayHost is another address of this machine.
const relayHost = "127.0.0.2"

// relayed has others reach a node, which is not started yet, through a relay.
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
		r.cut()
		serving.Wait()
	})
	return r
}

// serve passes on what two ends send each other, until one has enough.
func (r *relay) serve(client net.Conn) {
	node, err := net.DialTimeout("tcp", r.node, time.Second)
	if err != nil {
		client.Close()
		return
	}
	ends := [2]net.Conn{client, node}
	r.mu.Lock()
	for _, c := range ends {
		r.conns[c] = true
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

// LoseReplies lets the node execute what it is sent, and cuts before it is known.
func (r *relay) LoseReplies(rng *rand.Rand) {
	r.mute.Store(true)
	SleepUpTo(40*time.Millisecond, rng)
	r.cut()
	r.mute.Store(false)
}

// replies is the way back to a client.
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
