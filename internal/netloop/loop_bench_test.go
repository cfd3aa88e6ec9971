package netloop

import (
	"io"
	"net"
	"strings"
	"testing"
)

// BenchmarkEcho measures whole round trips through one loop: clients are goroutines
// over package net, so about half of the time is theirs. One op is one message.
func BenchmarkEcho(b *testing.B) {
	for _, bench := range []struct {
		name              string
		clients, pipeline int
	}{
		{"1client/pipeline1", 1, 1},
		{"50clients/pipeline1", 50, 1},
		{"50clients/pipeline16", 50, 16},
		{"50clients/pipeline64", 50, 64},
	} {
		b.Run(bench.name, func(b *testing.B) {
			g := newGroup(b, Config{Loops: 1})
			ln := serve(b, g, echo{})
			clients := make([]*net.TCPConn, bench.clients)
			for i := range clients {
				clients[i] = dialTo(b, ln)
			}
			batch := []byte(strings.Repeat(strings.Repeat("x", 64), bench.pipeline))
			rounds := max(1, b.N/(bench.clients*bench.pipeline))
			b.ReportAllocs()
			b.ResetTimer()
			errs := make(chan error, len(clients))
			for _, nc := range clients {
				go func() { errs <- pingPong(nc, batch, rounds) }()
			}
			for range clients {
				if err := <-errs; err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			reportLoop(b, g)
		})
	}
}

func pingPong(nc net.Conn, batch []byte, rounds int) error {
	reply := make([]byte, len(batch))
	for range rounds {
		if _, err := nc.Write(batch); err != nil {
			return err
		}
		if _, err := io.ReadFull(nc, reply); err != nil {
			return err
		}
	}
	return nil
}

// reportLoop reports the loops' work per op: busy time, and system calls other than waiting.
func reportLoop(b *testing.B, g *Group) {
	b.Helper()
	var total LoopStats
	sums := make(chan LoopStats, len(g.loops))
	each(b, g, func(l *Loop) { sums <- l.Stats() })
	for range g.loops {
		s := <-sums
		total.Busy += s.Busy
		total.Reads += s.Reads
		total.Writes += s.Writes
	}
	b.ReportMetric(float64(total.Busy)/float64(b.N), "busy-ns/op")
	b.ReportMetric(float64(total.Reads+total.Writes)/float64(b.N), "calls/op")
}

// bouncer sends every byte back to its peer on the other side, n times.
type bouncer struct {
	left int
	done chan bool
}

func (p *bouncer) OnData(c *Conn, in []byte) int {
	if p.left--; p.left < 0 {
		p.done <- true
		return len(in)
	}
	c.SetOut(append(c.Out(), in...))
	return len(in)
}

func (*bouncer) OnClose(*Conn, error) {}

// BenchmarkPingPong bounces one message between two conns, which are on one loop or on
// two: the cost of an iteration with a single event, and of waking another thread.
func BenchmarkPingPong(b *testing.B) {
	for name, loops := range map[string]int{"1loop": 1, "2loops": 2} {
		b.Run(name, func(b *testing.B) {
			g := newGroup(b, Config{Loops: loops})
			ln := serve(b, g, echo{})
			p := &bouncer{left: b.N, done: make(chan bool)}
			b.ReportAllocs()
			b.ResetTimer()
			g.loops[0].Post(func() {
				g.loops[0].Dial(ln.Addr(), patience, func(c *Conn) Handler {
					c.SetOut(append(c.Out(), "ball"...))
					return p
				}, func(err error) { b.Error(err) })
			})
			<-p.done
		})
	}
}

// BenchmarkPost posts from one goroutine to a loop that keeps up.
func BenchmarkPost(b *testing.B) {
	g := newGroup(b, Config{Loops: 1})
	f := func() {}
	b.ReportAllocs()
	for range b.N {
		g.loops[0].Post(f)
	}
	each(b, g, func(*Loop) {})
}

func BenchmarkTimer(b *testing.B) {
	g := newGroup(b, Config{Loops: 1})
	b.ReportAllocs()
	each(b, g, func(l *Loop) {
		f := func() {}
		for range b.N {
			l.After(tick, f).Stop()
		}
	})
}
