package node

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// slowWork is an exec.Work that a test ends.
type slowWork struct {
	run     func(ctx context.Context)
	replied atomic.Bool
	ended   atomic.Int32
}

func (w *slowWork) Run(ctx context.Context) { w.run(ctx) }
func (w *slowWork) Reply(*exec.Request)     { w.replied.Store(true) }
func (w *slowWork) End()                    { w.ended.Add(1) }

// begin has the node's only connection wait for the work, as a command does.
func (w *slowWork) begin(n *Node, run func(ctx context.Context, l *worker)) {
	for _, l := range n.workers {
		l.loop.Post(func() {
			for cn := range l.conns {
				w.run = func(ctx context.Context) { run(ctx, l) }
				r := l.begin(cn)
				r.Cmd = command.ByID(command.Ping)
				r.Later(w)
				l.end(r, 0, 0)
			}
		})
	}
}

// TestWorkEndsBeforeTheEngine: a node that closes waits until the loops have ended the work of its
// goroutines, which may hold pins of the engine.
func TestWorkEndsBeforeTheEngine(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("PING", "PONG")
	closed, release := make(chan struct{}), make(chan struct{})
	work := &slowWork{}
	work.begin(n, func(ctx context.Context, l *worker) {
		<-ctx.Done()
		<-closed
		l.loop.Post(func() { <-release }) // the loop is late
	})
	go func() {
		c.conn.SetReadDeadline(time.Now().Add(replyTimeout))
		_, _ = c.conn.Read(make([]byte, 1)) // until the node has closed the connection
		close(closed)
		time.AfterFunc(20*time.Millisecond, func() { close(release) })
	}()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if work.ended.Load() != 1 || work.replied.Load() {
		t.Errorf("the node has closed; the work was ended %d times, replied %v; want once, false", work.ended.Load(), work.replied.Load())
	}
	came(t, "the end of the connection", release)
}

// TestPipeLostWhileAGoroutineAnswers: a pipe whose connection is lost has ended although a goroutine
// still answers a command of it. The node acknowledges the pipe's next generation at once, and the
// command changes nothing and is not answered.
func TestPipeLostWhileAGoroutineAnswers(t *testing.T) {
	n := startNode(t)
	lost := openPipeTo(t, n, 1, 0, "large", 1, 2)
	begun, release := make(chan struct{}), make(chan struct{})
	work := &slowWork{}
	work.begin(n, func(context.Context, *worker) { close(begun); <-release })
	came(t, "the work begins", begun)
	lost.sendRaw([]byte("SET a behind\r\n")) // arrives with the connection's end, and is thrown away
	lost.conn.Close()
	next := openPipeTo(t, n, 1, 0, "large", 2, 2)
	next.want("GET a", "(nil)")
	close(release)
	eventually(t, "the work has ended", func() bool { return work.ended.Load() == 1 })
	next.want("GET a", "(nil)")
	if work.replied.Load() {
		t.Error("a command of a connection that is lost was answered")
	}
}
