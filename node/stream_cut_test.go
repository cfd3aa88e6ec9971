package node

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// relay is between a sender and its receiver. It breaks connections, or stands still.
type relay struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	cond    *sync.Cond
	open    map[net.Conn]bool
	stopped bool
	closed  bool       // no connection stays open
	deaf    bool       // what the receiver says is lost
	budget  func() int // bytes that the next connection passes on; nil: all
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to, open: make(map[net.Conn]bool)}
	r.cond = sync.NewCond(&r.mu)
	var jobs sync.WaitGroup
	jobs.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			jobs.Go(func() { r.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.set(func() { r.stopped, r.closed = false, true })
		r.cut()
		jobs.Wait()
	})
	return r
}

func (r *relay) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.cond.Broadcast()
}

// cut breaks all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
}

// pass connects c through, in both directions, as far as the budget goes.
func (r *relay) pass(c net.Conn) {
	d, err := net.Dial("tcp", r.to)
	if err != nil {
		c.Close()
		return
	}
	left := -1
	r.set(func() {
		r.open[c], r.open[d] = true, true
		if r.closed { // cut was here before
			c.Close()
			d.Close()
		}
		if r.budget != nil {
			left = r.budget()
		}
	})
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(ears{r, c}, d)
		c.Close()
	})
	buf := make([]byte, 16<<10)
	for left != 0 {
		n, err := c.Read(buf)
		r.mu.Lock()
		for r.stopped {
			r.cond.Wait()
		}
		r.mu.Unlock()
		if left > 0 {
			n = min(n, left)
			left -= n
		}
		if _, werr := d.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	c.Close()
	d.Close()
	back.Wait()
	r.set(func() {
		delete(r.open, c)
		delete(r.open, d)
	})
}

// ears is where the relay passes on to a sender what its receiver says.
type ears struct {
	r *relay
	c net.Conn
}

func (e ears) Write(b []byte) (int, error) {
	e.r.mu.Lock()
	deaf := e.r.deaf
	e.r.mu.Unlock()
	if deaf {
		return len(b), nil
	}
	return e.c.Write(b)
}

// behind is b as its sender shall reach it.
func (r *relay) behind(b *Node) ring.Member {
	m := memberOf(b)
	m.Addr = r.listener.Addr().String()
	return m
}

// load executes random commands on few keys over real connections until stop.
func load(t testing.TB, n *Node, seed uint64, commands int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := dial(t, n.Addr())
	large := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	for range commands / 50 {
		for range 50 {
			key := fmt.Sprintf("key:%d", rnd.IntN(3000))
			switch rnd.IntN(12) {
			case 0:
				c.send("DEL " + key)
			case 1:
				c.send("APPEND " + key + " more")
			case 2:
				c.send(fmt.Sprintf("SET %s %d EX %d", key, rnd.Int(), 1000+rnd.IntN(1000)))
			case 3:
				c.send("EXPIRE " + key + " 1000")
			case 4:
				c.send(fmt.Sprintf("SETRANGE %s %d x", key, rnd.IntN(30000)))
			case 5:
				c.send("PEXPIRE " + key + " 0")
			case 6:
				if rnd.IntN(20) == 0 {
					c.sendArgs([]byte("SET"), []byte(key), large[:100_000+rnd.IntN(30000)])
				} else {
					c.send("PERSIST " + key)
				}
			default:
				c.sendArgs([]byte("SET"), []byte(key), large[:rnd.IntN(500)])
			}
		}
		for range 50 {
			if c.read() == nil {
				t.Error("the connection was closed")
				return
			}
		}
	}
}

// Whatever breaks, and wherever: in the end the copies are what the owner has.
func TestStreamSurvivesCuts(t *testing.T) {
	a := startNode(t, func(c *Config) { c.Memory = 128 << 20 })
	b, _ := startReceiver(t, func(c *Config) { c.Memory = 256 << 20 })
	r := newRelay(t, b.Addr())
	cuts := 0
	rnd := rand.New(rand.NewPCG(7, 7))
	r.set(func() {
		r.budget = func() int {
			cuts++
			return 1000 + rnd.IntN(1+1<<(8+rnd.IntN(14)))
		}
	})
	load(t, a, 1, 5000)
	s := a.senders.To(r.behind(b))
	syncAll(s)
	enough := func() (yes bool) {
		r.set(func() { yes = cuts >= 3 })
		return yes
	}
	for round := uint64(0); round == 0 || round < 20 && !enough(); round++ {
		var loads sync.WaitGroup
		for i := range uint64(3) {
			loads.Go(func() { load(t, a, 3*round+i+2, 6000) })
		}
		loads.Wait()
	}
	r.set(func() { r.budget = nil })
	settle(t, s)
	sameContents(t, a, b)
	r.mu.Lock()
	defer r.mu.Unlock()
	if cuts < 3 {
		t.Errorf("the stream was cut %d times, want more", cuts)
	}
	t.Logf("%d connections, %d partitions sent again, %d bytes of snapshots", cuts, s.Progress().Resyncs, s.Progress().Moved)
}

// A receiver that stands still costs its sender a bounded amount, and the owner's commands nothing;
// what was lost is sent anew.
func TestStreamToStoppedReceiver(t *testing.T) {
	a := startNode(t, func(c *Config) { c.Memory = 128 << 20 })
	b, copies := startReceiver(t, func(c *Config) { c.Memory = 256 << 20 })
	r := newRelay(t, b.Addr())
	s := a.senders.To(r.behind(b))
	syncAll(s)
	settle(t, s)
	r.set(func() { r.stopped = true })
	c := dial(t, a.Addr())
	value := bytes.Repeat([]byte("v"), 10000)
	for round := range 5 {
		for i := range 1000 {
			c.sendArgs([]byte("SET"), fmt.Appendf(nil, "key:%d", i), value[:9000+round])
		}
		for range 1000 {
			if string(c.read()) != "+OK\r\n" {
				t.Fatal("a SET failed")
			}
		}
	}
	if n := a.senders.Stats(); n.LagBytes > 16<<20+replica.WindowBytes || n.LagBytes == 0 || n.Lag == 0 || n.Receivers != 1 {
		t.Errorf("of a receiver that stands still is known %+v", n)
	}
	r.set(func() { r.stopped = false })
	settle(t, s)
	sameContents(t, a, b)
	s.Close()
	eventually(t, "what a closed sender has counted stays", func() bool {
		stats, err := a.Stats()
		return err == nil && stats.Streams.Resyncs > 0 && stats.Streams.Moved > 0 && stats.Streams.Receivers == 0
	})
	if copies.voided() != 1 {
		t.Errorf("copies were given up %d times, want only at the beginning", copies.voided())
	}
}

// What the receiver does not know any more begins anew, wholly.
func TestStreamSecondGeneration(t *testing.T) {
	a := startNode(t)
	b, copies := startReceiver(t)
	r := newRelay(t, b.Addr())
	load(t, a, 1, 3000)
	s := a.senders.To(r.behind(b))
	syncAll(s)
	settle(t, s)
	_, _ = b.receivers.Open(a.name(), 1<<40) // another generation than the one that a goes on with
	r.cut()
	load(t, a, 2, 1000)
	eventually(t, "a new generation", func() bool { return copies.voided() >= 4 })
	settle(t, s)
	sameContents(t, a, b)
	if s.Progress().Resyncs < ring.Partitions {
		t.Errorf("%d partitions were sent again, want all", s.Progress().Resyncs)
	}
}

// Snapshots are throttled, changes are not.
func TestStreamThrottlesSnapshots(t *testing.T) {
	a := startNode(t, func(c *Config) { c.MoveRate = 1 << 20 })
	b, _ := startReceiver(t)
	b.SetTable(soleTable(b))
	c := dial(t, a.Addr())
	c.want("SET live 1", "OK")
	for i := range 100 {
		c.sendArgs([]byte("SET"), fmt.Appendf(nil, "key:%d", i), make([]byte, 10000))
		c.read()
	}
	s := a.senders.To(memberOf(b))
	s.Sync(ring.PartitionOf([]byte("live")), 1)
	settle(t, s)
	begun := time.Now()
	syncAll(s)
	c.want("INCR live", "(integer) 2")
	flushed(t, s)
	settle(t, s)
	if took := time.Since(begun); took < 700*time.Millisecond {
		t.Errorf("1 MB took %v at 1 MiB/s", took)
	}
	sameContents(t, a, b)
}
