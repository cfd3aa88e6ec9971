package admin

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/metrics/fake"
	"github.com/dunlin-cache/dunlin/metrics/status"
	"github.com/dunlin-cache/dunlin/node"
)

// gatedNode answers when its gate is open.
type gatedNode struct {
	fake.Node
	gate  chan struct{}
	asked atomic.Int32
}

func (g *gatedNode) Stats() (node.Stats, error) {
	g.asked.Add(1)
	<-g.gate
	return g.Node.Stats()
}

// TestReadersAreLimited checks that one or two collections answer many readers at once, that
// readers over the limit are refused, and that readers of the page do not take places of readers of
// the status.
func TestReadersAreLimited(t *testing.T) {
	a := newAdmin(t, Options{})
	n := &gatedNode{gate: make(chan struct{})}
	open := sync.OnceFunc(func() { close(n.gate) })
	defer open() // runs before the server closes
	a.AddNode(source("n1", 1, fake.TwoNodes()), n, nil)
	a.AddProxy(source("p", 3, fake.TwoNodes()), &fake.Proxy{Up: true})
	answers := make(chan int)
	// An unused connection, which the default client may open, keeps the server from closing for 5
	// s.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range mostReaders + 5 {
		go func() {
			resp, err := client.Get("http://" + a.Addr() + []string{"/", "/api/live"}[i%2])
			if err != nil {
				answers <- 0
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode == http.StatusServiceUnavailable &&
				(resp.Header.Get("Retry-After") == "" || !bytes.Contains(body, []byte("too many readers"))) {
				t.Errorf("refused with %q and headers %v", body, resp.Header)
			}
			answers <- resp.StatusCode
		}()
	}
	for range 5 {
		if code := <-answers; code != http.StatusServiceUnavailable {
			t.Errorf("a reader too many is answered %d", code)
		}
	}
	answered := make(chan error, 1)
	go func() { // waits for the gate as well
		_, err := status.ReadStatus(t.Context(), a.Addr())
		answered <- err
	}()
	open()
	for range mostReaders {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("a reader is answered %d", code)
		}
	}
	if err := <-answered; err != nil {
		t.Errorf("who asks for the status: %v", err)
	}
	// Two for the page, one for the status, and those for the history's samples if the test takes
	// that long.
	if asked := n.asked.Load(); asked > 10 {
		t.Errorf("the node was asked %d times for %d readers", asked, mostReaders)
	}
}

// TestReaderThatDoesNotRead checks that a reader that does not read keeps its place for sendTime
// only.
func TestReaderThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make(readers, 1)
		ours, theirs := net.Pipe()
		server := http.Server{Handler: r.limit(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
		})}
		conns := make(chan net.Conn, 1)
		conns <- ours
		go func() { _ = server.Serve(pipes{conns}) }()
		if _, err := io.WriteString(theirs, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(r) != 1 {
			t.Error("the reader has no place")
		}
		time.Sleep(sendTime + time.Second)
		synctest.Wait()
		if len(r) != 0 {
			t.Error("the reader keeps its place")
		}
		theirs.Close()
		close(conns)
		server.Close()
	})
}

// pipes is a listener that accepts the connections that a test gives it.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }
