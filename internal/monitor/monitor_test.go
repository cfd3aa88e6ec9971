package monitor

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync/atomic"
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
	hub        *Hub
	added      chan *Feed
	near, away *Feed // those of the watcher's loop and of the other one
	lines      *bufio.Reader
	conn       net.Conn
	gone       chan error
	address    string
	budget     *budget
	muted      bool // whether the watcher is muted; used on its loop
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := startRig(t)
	r.conn, r.near = r.watch(t)
	r.lines = bufio.NewReader(r.conn)
	r.away = r.hub.feeds[1-r.near.loop.Index()]
	return r
}

// startRig has no watcher yet.
func startRig(t *testing.T) *rig {
	t.Helper()
	group, err := netloop.NewGroup(netloop.Config{Loops: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(group.Close)
	r := &rig{group: group, gone: make(chan error, watchers), added: make(chan *Feed, 1), budget: &budget{most: 64 << 20}}
	r.hub = New(group.Loops(), r.budget)
	listener, err := group.Listen("127.0.0.1:0", func(c *netloop.Conn) netloop.Handler {
		f := r.hub.Feed(c.Loop())
		f.Add(c, func() bool { return r.muted })
		r.added <- f
		return &handler{f, r.gone}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	r.address = listener.Addr()
	return r
}

// watch connects a watcher. It returns the feed of its loop.
func (r *rig) watch(t *testing.T) (conn net.Conn, feed *Feed) {
	t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, <-r.added
}

// budget is a netloop.Budget with a limit.
type budget struct {
	most int64
	used atomic.Int64
}

func (b *budget) Charge(n int64) bool {
	if b.used.Add(n) <= b.most {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *budget) Refund(n int64) { b.used.Add(-n) }

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

const watchers = 300

// manyWatchers returns a rig with so many of them, and how many each loop has.
func manyWatchers(t *testing.T) (r *rig, conns []net.Conn, each map[*Feed]int) {
	t.Helper()
	r, each = startRig(t), map[*Feed]int{}
	for range watchers {
		conn, feed := r.watch(t)
		conns = append(conns, conn)
		each[feed]++
	}
	r.near, r.away = r.hub.feeds[0], r.hub.feeds[1]
	for _, f := range r.hub.feeds {
		r.on(t, f, func() {}) // it knows of all
	}
	return r, conns, each
}

// TestManyWatchersTakeTurns checks that a loop shows lines to a few watchers at a time, that all see them, and that
// the lines are charged as long as some have not.
func TestManyWatchersTakeTurns(t *testing.T) {
	r, conns, each := manyWatchers(t)
	const size = 32 << 10
	line := strings.Repeat("l", size-1) + "\n"
	r.on(t, r.near, func() {
		f := r.near
		show(f, line)
		turns := 0
		for f.flush(); len(f.waiting) > 0; turns++ {
			before := f.at
			if r.budget.used.Load() < size {
				t.Errorf("lines of %d bytes are charged with %d", size, r.budget.used.Load())
			}
			f.turn() // the one that is posted
			if after := f.at; len(f.waiting) > 0 && (after-before-1)*(watcherSteps+size/stepBytes) > turnSteps {
				t.Errorf("one turn shows %d bytes to %d watchers", size, after-before)
			}
		}
		if least := each[f] * (watcherSteps + size/stepBytes) / (2 * turnSteps); turns < least {
			t.Errorf("%d watchers are shown %d bytes in %d turns", each[f], size, turns)
		}
	})
	show := func(f *Feed, text string) { r.on(t, f, func() { show(f, text) }) }
	show(r.away, "next\n")
	for i, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, size+len("next\n"))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != line+"next\n" {
			t.Fatalf("watcher %d sees %d bytes that end with %q, %v", i, len(got), got[size:], err)
		}
	}
	for _, f := range r.hub.feeds { // what shows the last ones their lines has returned
		r.on(t, f, func() {
			if n := f.transit.Load(); n != 0 {
				t.Errorf("%d bytes are on their way", n)
			}
		})
	}
	if n := r.budget.used.Load(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
}

// TestLinesAreBounded checks that what one iteration shows does not pile up beyond the limit, and neither beyond
// the budget: the watchers are closed, in turns, and those who come later see what comes then.
func TestLinesAreBounded(t *testing.T) {
	for name, most := range map[string]int64{"the limit": 64 << 20, "the budget": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := manyWatchers(t)
			r.budget.most = most
			line := strings.Repeat("l", 16<<10-1) + "\n"
			r.on(t, r.near, func() {
				for range 3 * maxTransit / len(line) {
					show(r.near, line)
					if n := len(r.near.lines); n > maxLines+len(line) {
						t.Errorf("%d bytes are kept", n)
						return
					}
					if n := r.budget.used.Load(); n > min(most, 2*maxTransit) {
						t.Errorf("%d bytes are on their way", n)
						return
					}
				}
			})
			for range watchers {
				select {
				case err := <-r.gone:
					if err != netloop.ErrSlowReader {
						t.Fatalf("a watcher is closed for %v", err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("not all watchers are closed")
				}
			}
			conn, feed := r.watch(t)
			r.on(t, feed, func() { show(feed, "later\n") })
			if got, err := bufio.NewReader(conn).ReadString('\n'); err != nil || got != "later\n" {
				t.Errorf("a later watcher sees %q, %v", got, err)
			}
			for _, f := range r.hub.feeds {
				r.on(t, f, func() {})
			}
			if n := r.budget.used.Load(); n != 0 {
				t.Errorf("%d bytes are still charged", n)
			}
		})
	}
}
