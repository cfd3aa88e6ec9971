package node

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// BenchmarkGetBesideLarge is how long one client's GETs of small values wait while another one
// moves values of 512 MiB over the same loop.
func BenchmarkGetBesideLarge(b *testing.B) {
	const size = 512 << 20
	run := func(name string, memory int64, small int, large func(c *largeClient)) {
		b.Run(name, func(b *testing.B) {
			n := startNode(b, func(c *Config) { c.Memory, c.Group = memory, newGroup(b, 1) })
			for i := range small {
				if err := put(n, "small:"+strconv.Itoa(i), fmt.Sprintf("%0100d", i), 1); err != nil {
					b.Fatal(err)
				}
			}
			moved, stop, done := int64(0), make(chan struct{}), make(chan struct{})
			conn, err := net.Dial("tcp", n.Addr())
			if err != nil {
				b.Fatal(err)
			}
			go func() {
				defer close(done)
				c := largeClient{conn: conn, piece: make([]byte, 1<<20), size: size}
				for c.err == nil {
					select {
					case <-stop:
						moved = c.moved
						return
					default:
						large(&c)
					}
				}
				b.Error(c.err)
			}()
			waits := probe(b, n)
			close(stop)
			<-done
			report(b, waits, moved)
			n.cfg.Group.Each(func(l *netloop.Loop) {
				b.ReportMetric(float64(l.Stats().LongestIteration.Microseconds()), "longest-iteration-µs")
			})
		})
	}
	run("idle", 1<<30, 0, func(*largeClient) { time.Sleep(10 * time.Millisecond) })
	run("SET", 2<<30, 0, func(c *largeClient) { c.set("large") })
	run("SET evicts", 1<<30, 8_000_000, func(c *largeClient) { c.set("large" + strconv.Itoa(int(c.moved/size)%4)) })
	run("GET", 1<<30, 0, func(c *largeClient) {
		if c.moved == 0 {
			c.set("large")
		}
		c.get("large")
	})
	ask := func(request string) func(c *largeClient) {
		return func(c *largeClient) {
			if c.moved == 0 {
				c.set("{t}a")
				c.set("{t}b")
			}
			c.ask(strings.Fields(request)...)
		}
	}
	run("BITCOUNT", 2<<30, 0, ask("BITCOUNT {t}a"))
	run("BITPOS", 2<<30, 0, ask("BITPOS {t}a 1"))
	run("BITOP", 3<<30, 0, ask("BITOP OR {t}c {t}a {t}b"))
}

// probe asks for a small value b.N times, one after the other.
func probe(b *testing.B, n *Node) []time.Duration {
	c := dial(b, n.Addr())
	c.want("SET probe value", "OK")
	c.conn.SetDeadline(time.Time{})
	request, reply := []byte("*2\r\n$3\r\nGET\r\n$5\r\nprobe\r\n"), make([]byte, len("$5\r\nvalue\r\n"))
	waits := make([]time.Duration, 0, b.N)
	for b.Loop() {
		start := time.Now()
		if _, err := c.conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAtLeast(c.conn, reply, 5); err != nil {
			b.Fatal(err)
		}
		waits = append(waits, time.Since(start))
		if reply[1] == '-' { // evicted
			c.want("SET probe value", "OK")
			c.conn.SetDeadline(time.Time{})
		}
	}
	return waits
}

func report(b *testing.B, waits []time.Duration, moved int64) {
	slices.Sort(waits)
	at := func(share float64) float64 {
		return float64(waits[int(share*float64(len(waits)-1))].Nanoseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "p50-µs")
	b.ReportMetric(at(0.99), "p99-µs")
	b.ReportMetric(at(0.999), "p99.9-µs")
	b.ReportMetric(at(1), "max-µs")
	b.ReportMetric(float64(moved)/(1<<20)/b.Elapsed().Seconds(), "MiB/s")
}

// largeClient moves large values over one connection.
type largeClient struct {
	conn  net.Conn
	piece []byte
	size  int
	moved int64
	err   error
}

func (c *largeClient) set(key string) {
	head := resp.AppendArray(nil, 3)
	head = resp.AppendBulkString(head, "SET")
	head = resp.AppendBulkString(head, key)
	c.write(resp.AppendBulkHeader(head, c.size))
	for left := c.size; left > 0; left -= len(c.piece) {
		c.write(c.piece[:min(left, len(c.piece))])
	}
	c.write([]byte("\r\n"))
	c.read(len("+OK\r\n"))
}

func (c *largeClient) get(key string) {
	c.write(resp.AppendRequest(nil, []byte("GET"), []byte(key)))
	c.read(len(resp.AppendBulkHeader(nil, c.size)) + c.size + 2)
}

// ask asks for a short reply, which counts as a large value.
func (c *largeClient) ask(args ...string) {
	out := resp.AppendArray(nil, len(args))
	for _, arg := range args {
		out = resp.AppendBulkString(out, arg)
	}
	c.write(out)
	if c.err == nil {
		var n int
		if n, c.err = c.conn.Read(c.piece); n > 0 && c.piece[0] == '-' {
			c.err = fmt.Errorf("%q answers %s", args, c.piece[:n])
		}
		c.piece[0] = 0
		c.moved += int64(c.size)
	}
}

func (c *largeClient) write(p []byte) {
	if c.err == nil {
		_, c.err = c.conn.Write(p)
		c.moved += int64(len(p))
	}
}

func (c *largeClient) read(n int) {
	for n > 0 && c.err == nil {
		var m int
		m, c.err = c.conn.Read(c.piece[:min(n, len(c.piece))])
		n -= m
		c.moved += int64(m)
	}
}
