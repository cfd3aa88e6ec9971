package netloop

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// However many replies, an iteration writes once.
func TestOneWritePerIteration(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		for range in {
			c.SetOut(append(c.Out(), '+'))
		}
		return len(in)
	}}))
	resume := holdLoop(g.loops[0])
	write(t, nc, strings.Repeat("x", 100))
	resume()
	expect(t, nc, strings.Repeat("+", 100))
	each(t, g, func(l *Loop) {
		if s := l.Stats(); s.Reads != 1 || s.Writes != 1 {
			t.Errorf("%d reads and %d writes, want one of each", s.Reads, s.Writes)
		}
	})
}

// Output grows over several buffers and keeps its order.
func TestOutputGrows(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	big, want := randomLine(300_000), ""
	for i := range 20 {
		want += big[:i] + big[:i*1000] + big
	}
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		for i := range 20 {
			c.SetOut(append(c.Out(), big[:i]...))
			out, _ := c.Grow(c.Out(), i*1000)
			c.SetOut(append(out, big[:i*1000]...))
			c.SetOut(append(c.Out(), big...))
		}
		return len(in)
	}}))
	for range 3 {
		write(t, nc, "x")
		expect(t, nc, want)
	}
}

// A handler that stops when its output is Full gets the rest of its input when the client reads.
func TestSoftLimit(t *testing.T) {
	const replySize, requests = 100_000, 300
	g := newGroup(t, Config{Loops: 1, SoftOut: 1 << 20})
	conns := make(chan *Conn, 1)
	reply := randomLine(replySize)
	nc := dialTo(t, listen(t, g, func(c *Conn) Handler {
		conns <- c
		return funcs{data: func(c *Conn, in []byte) int {
			n := 0
			for n < len(in) && !c.Full() {
				c.SetOut(append(c.Out(), reply...))
				n++
			}
			return n
		}}
	}))
	c := receive(t, conns)
	write(t, nc, strings.Repeat("x", requests/2))
	eventually(t, g, "reading stops", func(*Loop) bool { return c.stops == stopOutput && c.blocked > 0 })
	write(t, nc, strings.Repeat("x", requests/2))
	each(t, g, func(*Loop) {
		if c.Queued() > 1<<20+replySize {
			t.Errorf("%d bytes queued", c.Queued())
		}
	})
	for range requests {
		expect(t, nc, reply)
	}
	eventually(t, g, "reading goes on", func(*Loop) bool { return c.stops == 0 && c.out == nil && c.blocked == 0 })
}

// One reply may be larger than the hard limit.
func TestLargeReplyPassesHardLimit(t *testing.T) {
	g := newGroup(t, Config{Loops: 1, SoftOut: 10_000, HardOut: 100_000})
	reply := randomLine(tooMuch)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		c.SetOut(append(c.Out(), reply...))
		return len(in)
	}}))
	for range 2 {
		write(t, nc, "x")
		expect(t, nc, reply)
	}
}

// Output that piles up, message by message, closes the conn.
func TestHardLimit(t *testing.T) {
	g := newGroup(t, Config{Loops: 1, SoftOut: 100_000, HardOut: 1 << 20})
	closed, reasons := closeReasons()
	message := randomLine(50_000)
	dialTo(t, listen(t, g, func(c *Conn) Handler {
		timer := c.Loop().Every(tick, func() {
			for range 100 {
				c.SetOut(append(c.Out(), message...))
			}
		})
		return funcs{closed: func(c *Conn, err error) {
			timer.Stop()
			closed(c, err)
		}}
	}))
	if err := receive(t, reasons); err != ErrSlowReader {
		t.Fatalf("closed with %v, want %v", err, ErrSlowReader)
	}
	each(t, g, func(l *Loop) {
		if s := l.Stats(); s.SlowReaders != 1 || len(l.blocked) > 0 {
			t.Errorf("%d slow readers counted, %d conns blocked", s.SlowReaders, len(l.blocked))
		}
	})
}

// A conn whose peer reads nothing is closed, even after CloseAfterFlush.
func TestStalledReader(t *testing.T) {
	for name, finish := range map[string]bool{"open": false, "closing": true} {
		t.Run(name, func(t *testing.T) {
			const stall = 300 * time.Millisecond
			g := newGroup(t, Config{Loops: 1, Stall: stall})
			closed, reasons := closeReasons()
			nc := dialTo(t, serve(t, g, funcs{closed: closed, data: func(c *Conn, in []byte) int {
				c.SetOut(append(c.Out(), randomLine(tooMuch)...))
				if finish {
					c.CloseAfterFlush()
				}
				return len(in)
			}}))
			start := time.Now()
			write(t, nc, "x")
			if err := receive(t, reasons); err != ErrSlowReader {
				t.Fatalf("closed with %v, want %v", err, ErrSlowReader)
			}
			if d := time.Since(start); d < stall {
				t.Fatalf("closed after %v, before the %v of Stall", d, stall)
			}
			// The kernel keeps nothing for it.
			if _, err := io.Copy(io.Discard, nc); !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("the peer reads to the end: %v, want a reset", err)
			}
		})
	}
}

// TestKernelTakesLittle checks that output that a peer does not read does not pile up in the kernel
// either, whose memory all conns share.
func TestKernelTakesLittle(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	conns := make(chan *Conn, 1)
	nc := dialTo(t, serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		c.SetOut(append(c.Out(), randomLine(tooMuch)...))
		conns <- c
		return len(in)
	}}))
	if err := nc.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	write(t, nc, "x")
	c := receive(t, conns)
	eventually(t, g, "the socket is full", func(*Loop) bool { return c.blocked > 0 })
	each(t, g, func(*Loop) {
		if n := undelivered(c.fd); n > 3*notSent {
			t.Errorf("the kernel has taken %d bytes", n)
		}
	})
}

// pipe is a Flusher that sends its bytes in pieces as the socket accepts them.
type pipe struct {
	funcs
	queue   []byte
	flushes int
}

func (p *pipe) OnFlush(c *Conn) {
	p.flushes++
	n, err := c.TryWrite(p.queue)
	if err == nil {
		p.queue = p.queue[n:]
	}
}

func TestFlusher(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	want := randomLine(tooMuch)
	p := &pipe{}
	p.data = func(c *Conn, in []byte) int {
		p.queue = append(p.queue, want...)
		c.MarkDirty()
		c.MarkDirty()
		return len(in)
	}
	nc := dialTo(t, serve(t, g, p))
	write(t, nc, "x")
	eventually(t, g, "the socket is full", func(l *Loop) bool { return len(l.blocked) == 1 })
	each(t, g, func(l *Loop) {
		if n, err := l.blocked[0].TryWrite([]byte("x")); n != 0 || err != nil {
			t.Errorf("TryWrite while blocked: %d, %v", n, err)
		}
	})
	expect(t, nc, want)
	eventually(t, g, "all is sent", func(l *Loop) bool { return len(p.queue) == 0 && len(l.blocked) == 0 })
	// A message that fits causes one flush and no waiting.
	before := 0
	each(t, g, func(*Loop) { p.queue, before = append(p.queue, "more"...), p.flushes })
	write(t, nc, "x")
	expect(t, nc, "more")
	expect(t, nc, want)
	if before == 0 {
		t.Fatal("never flushed")
	}
}

// Flushers are flushed before sessions, hooks run before both, and output that a flusher causes is
// still sent.
func TestFlushOrder(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	var order []string
	var session, piped *Conn
	ready := make(chan bool, 2)
	nc := dialTo(t, listen(t, g, func(c *Conn) Handler {
		session = c
		ready <- true
		return funcs{data: func(_ *Conn, in []byte) int {
			c.SetOut(append(c.Out(), "session,"...))
			piped.MarkDirty()
			return len(in)
		}}
	}))
	pc := dialTo(t, listen(t, g, func(c *Conn) Handler {
		piped = c
		ready <- true
		return orderPipe{onFlush: func(c *Conn) {
			order = append(order, "flusher")
			if session.dirty && session.Queued() > 0 {
				order = append(order, "session unsent")
			}
			session.SetOut(append(session.Out(), "pipe"...))
			_, err := c.TryWrite([]byte("to the node"))
			if err != nil {
				order = append(order, err.Error())
			}
		}}
	}))
	receive(t, ready)
	receive(t, ready)
	each(t, g, func(l *Loop) {
		l.OnIterationEnd(func() {
			if session.dirty {
				order = append(order, "hook")
			}
		})
	})
	write(t, nc, "x")
	expect(t, nc, "session,pipe")
	expect(t, pc, "to the node")
	each(t, g, func(*Loop) {
		if got := strings.Join(order, ", "); got != "hook, flusher, session unsent" {
			t.Errorf("order: %s", got)
		}
	})
}

type orderPipe struct {
	funcs
	onFlush func(c *Conn)
}

func (p orderPipe) OnFlush(c *Conn) { p.onFlush(c) }

// A flusher that marks itself dirty in each flush does not prevent the loop's other work.
func TestFlusherMarksItself(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	stop := false
	p := orderPipe{onFlush: func(c *Conn) {
		if !stop {
			c.MarkDirty()
		}
	}}
	dialTo(t, listen(t, g, func(c *Conn) Handler {
		c.MarkDirty()
		return p
	}))
	eventually(t, g, "conn is there", func(l *Loop) bool { return l.Stats().Accepted == 1 })
	nc := dialTo(t, serve(t, g, echo{}))
	write(t, nc, "hello")
	expect(t, nc, "hello")
	each(t, g, func(*Loop) { stop = true })
}

func TestTryWriteError(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	closed, reasons := closeReasons()
	var failure error
	nc := dialTo(t, serve(t, g, orderPipe{
		funcs: funcs{closed: closed, data: func(c *Conn, in []byte) int {
			c.Pause()
			c.MarkDirty()
			return len(in)
		}},
		onFlush: func(c *Conn) {
			if _, err := c.TryWrite([]byte("x")); err != nil {
				failure = err
				return
			}
			c.MarkDirty() // until the peer's reset makes it fail
		},
	}))
	write(t, nc, "x")
	nc.Close()
	if err := receive(t, reasons); err == nil {
		t.Fatal("closed without an error")
	} else if failure != nil && !errors.Is(err, failure) {
		t.Fatalf("closed with %v, TryWrite had failed with %v", err, failure)
	}
}
