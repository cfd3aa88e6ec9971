package proxy

import (
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

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

// Parked requests count as memory of their clients. Beyond the limit they are refused, and nothing
// else is lost.
func TestParkedRequestsAreCharged(t *testing.T) {
	const clients, size, fit = 12, 500 << 10, 6
	room := &budget{most: (fit+1)*size + size*3/4} // a request is in its connection's buffer too until it is parked
	c := newCluster(t, 2, oneLoop(t), func(cfg *Config) { cfg.Buffers, cfg.Patience = room, time.Minute })
	dead, alive := key(0, 2), key(1, 2)
	c.nodes[0].ln.Close()
	all := make([]*conn, clients)
	for i := range all {
		all[i] = c.dial()
		all[i].send("SET " + dead + " " + strings.Repeat("x", size))
		eventually(t, "the request is parked or refused", func() bool {
			s := c.stats()
			return s.Parking+int(s.NotParked) == i+1 && s.Buffers < int64((s.Parking+1)*size)
		})
		if s := c.stats(); s.Buffers < int64(s.Parking*size) {
			t.Fatalf("%d parked requests of %d bytes are charged as %d bytes", s.Parking, size, s.Buffers)
		}
	}
	if s := c.stats(); s.Parking != fit {
		t.Errorf("%d requests are parked, and %d were refused", s.Parking, s.NotParked)
	}
	refused := strings.TrimSuffix(string(errNotParked), "\r\n")
	for _, cl := range all[fit:] {
		cl.want(refused)
		cl.send("SET "+alive+" 1", "GET "+alive)
		cl.want("+OK", "$1 1")
	}
	c.route(func(int) int { return 1 })
	for _, cl := range all[:fit] {
		cl.want("+OK")
	}
	eventually(t, "the memory is free again", func() bool { return c.stats().Buffers < size })
}

// A client that disconnects takes the memory of its parked requests with it.
func TestParkedRequestsOfDisconnectedClient(t *testing.T) {
	const size = 500 << 10
	c := newCluster(t, 1, oneLoop(t))
	c.nodes[0].ln.Close()
	cl := c.dial()
	cl.send("SET k " + strings.Repeat("x", size))
	eventually(t, "the request is parked", func() bool { return c.stats().Buffers > size })
	if err := cl.Conn.(*net.TCPConn).SetLinger(0); err != nil { // a reset is noticed though nothing is read
		t.Fatal(err)
	}
	cl.Close()
	eventually(t, "its memory is free", func() bool { return c.stats().Buffers < size/10 })
}

// The buffers of all pipes have one limit. Beyond it clients wait, nothing fails, and small commands
// reach every node.
func TestPipesShareALimit(t *testing.T) {
	const most, size, busy, each = 2 << 20, 500 << 10, 3, 4
	c := newCluster(t, busy+1, oneLoop(t), func(cfg *Config) { cfg.PipeBuffers, cfg.Patience = most, time.Minute })
	gate := make(chan struct{})
	for _, n := range c.nodes[:busy] {
		n.set(func(n *fakeNode) { n.gate = gate })
	}
	var all []*conn
	for range each {
		for i := range busy {
			cl := c.dial()
			cl.send("SET " + key(i, busy+1) + " " + strings.Repeat("x", size))
			all = append(all, cl)
		}
	}
	eventually(t, "the pipes are full", func() bool {
		s := c.stats()
		return s.PipeBuffers > most/2 && s.Buffers > 4*size // what has no room waits in clients' buffers
	})
	cl := c.dial()
	cl.send("SET "+key(busy, busy+1)+" 1", "GET "+key(busy, busy+1))
	cl.want("+OK", "$1 1")
	if s := c.stats(); s.PipeBuffers > most+1<<20 { // a buffer may double
		t.Errorf("the pipes' buffers have %d bytes, want at most %d", s.PipeBuffers, most)
	}
	close(gate)
	for _, cl := range all {
		cl.want("+OK")
	}
	eventually(t, "the buffers are free", func() bool { return c.proxy.pipeRoom.used.Load() < most/2 })
}

// A long command that is split lies in its client's buffer, once, until it is answered.
func TestLongPartsAreCharged(t *testing.T) {
	const size = 3 << 20
	c := newCluster(t, 2, oneLoop(t))
	gate := make(chan struct{})
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.gate = gate })
	}
	cl := c.dial()
	cl.send("MSET " + key(0, 2) + " " + strings.Repeat("x", size) + " " + key(1, 2) + " " + strings.Repeat("y", size))
	eventually(t, "the command is split", func() bool { return c.stats().Splits == 1 })
	eventually(t, "its bytes are charged once", func() bool {
		got := c.stats().Buffers
		return got >= 2*size && got <= 2*size+1<<20
	})
	close(gate)
	cl.want("+OK")
	c.wantNothingKept()
}

// Who has sent most of a long request, and hardly sends more, gives way when others find no memory.
func TestStalledRequestsGiveWay(t *testing.T) {
	const clients, size = 5, 1 << 20
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Buffers = &budget{most: 2 * clients * size} })
	w := c.proxy.workers[0]
	look := func() {
		done := make(chan struct{})
		w.loop.Post(func() { w.closeSilent(); close(done) })
		<-done
	}
	w.loop.Post(func() { w.idleTimer.Stop() })
	long := func(n int) []byte {
		return resp.AppendRequest(nil, slices.Repeat([][]byte{[]byte("MSET"), []byte(strings.Repeat("k", 1000))}, n/1000)...)
	}
	half := long(size)
	for range clients {
		if _, err := c.dial().Write(half[:len(half)-10]); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "they have come", func() bool { return c.stats().Buffers > clients*int64(len(half)) })
	for range 3 {
		look()
	}
	if s := c.stats(); s.Clients != clients {
		t.Fatalf("%d of %d are closed though nobody wants their memory", clients-s.Clients, clients)
	}
	big := c.dial()
	_, _ = big.Write(long(12 * size)) // fails when the proxy closes
	eventually(t, "a request finds no memory", func() bool { return c.stats().Starved == 1 })
	eventually(t, "they are closed", func() bool {
		look()
		s := c.stats()
		return s.Clients == 0 && s.Buffers < size
	})
}

// What a parser keeps of a request of many words is charged while the request arrives, and not behind its end.
func TestWordsOfAnUnfinishedRequestAreCharged(t *testing.T) {
	const words, each = 200_000, 8 + 24 // bytes: where a word lies, and its view
	c := newCluster(t, 1, oneLoop(t))
	cl := c.dial()
	write := func(text string) {
		if _, err := cl.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("*200003\r\n$4\r\nHDEL\r\n$1\r\nk\r\n" + strings.Repeat("$1\r\nx\r\n", words))
	eventually(t, "the words are charged", func() bool { return c.stats().Heap >= words*each })
	write("$1\r\nx\r\n")
	cl.reply()
	eventually(t, "they are forgotten", func() bool { return c.stats().Heap == 0 })
}
