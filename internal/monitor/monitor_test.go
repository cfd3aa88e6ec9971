package monitor

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// handler handles a connection that monitors from beginning to end.
type handler struct {
	feed *Feed
	gone chan error
}

func (h *handler) OnData(_ *netloop.Conn, in []byte) int { return len(in) }

func (h *handler) OnClose(c *netloop.Conn, err error) {
	h.feed.Remove(c)
	h.gone <- err
}

// rig is two loops, and a watcher on one of them.
type rig struct {
	group      *netloop.Group
	near, away *Feed // those of the watcher's loop and of the other one
	lines      *bufio.Reader
	conn       net.Conn
	gone       chan error
	muted      bool // whether the watcher is muted; used on its loop
}

func newRig(t *testing.T) *rig {
	t.Helper()
	group, err := netloop.NewGroup(netloop.Config{Loops: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(group.Close)
	hub := New(group.Loops())
	r := &rig{group: group, gone: make(chan error, 1)}
	added := make(chan *Feed, 1)
	listener, err := group.Listen("127.0.0.1:0", func(c *netloop.Conn) netloop.Handler {
		f := hub.Feed(c.Loop())
		f.Add(c, func() bool { return r.muted })
		added <- f
		return &handler{f, r.gone}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if r.conn, err = net.Dial("tcp", listener.Addr()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.conn.Close() })
	r.lines = bufio.NewReader(r.conn)
	r.near = <-added
	r.away = hub.feeds[1-r.near.loop.Index()]
	return r
}

// on runs f on the loop of a feed.
func (r *rig) on(t *testing.T, feed *Feed, f func()) {
	t.Helper()
	if err := r.group.Each(func(l *netloop.Loop) {
		if l == feed.loop {
			f()
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func show(f *Feed, line string) {
	f.Show(func(dst []byte) []byte { return append(dst, line...) })
}

func TestLinesOfAllLoops(t *testing.T) {
	r := newRig(t)
	for _, f := range []*Feed{r.near, r.away} {
		r.on(t, f, func() {
			if !f.On() {
				t.Error("a loop does not know of the watcher")
			}
			show(f, "one\n")
			show(f, "two\n")
		})
		for _, want := range []string{"one\n", "two\n"} {
			if got, err := r.lines.ReadString('\n'); err != nil || got != want {
				t.Fatalf("the watcher sees %q, %v, want %q", got, err, want)
			}
		}
	}
	r.conn.Close()
	<-r.gone
	for _, f := range []*Feed{r.near, r.away} {
		r.on(t, f, func() {
			if f.On() {
				t.Error("nobody watches, and a loop still believes so")
			}
		})
	}
}

// TestMutedWatcher checks that a muted watcher misses the lines that are shown meanwhile.
func TestMutedWatcher(t *testing.T) {
	r := newRig(t)
	r.on(t, r.near, func() {
		r.muted = true
		show(r.near, "one\n")
		r.near.flush()
		r.muted = false
		show(r.near, "two\n")
	})
	if got, err := r.lines.ReadString('\n'); err != nil || got != "two\n" {
		t.Errorf("the watcher sees %q, %v, want the second line", got, err)
	}
}

// TestTooManyLines checks that a loop that cannot deliver lines loses its watchers instead of using
// more and more memory.
func TestTooManyLines(t *testing.T) {
	r := newRig(t)
	r.near.transit.Store(maxTransit) // as if the loop had delivered none for long
	r.on(t, r.away, func() { show(r.away, "lost\n") })
	select {
	case err := <-r.gone:
		if err != netloop.ErrSlowReader {
			t.Errorf("the watcher is closed for %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the watcher is not closed")
	}
}
