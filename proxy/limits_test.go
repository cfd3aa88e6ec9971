package proxy

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/proxy/order"
)

// Commands for a node that is down fail together, not one after another with the patience between them.
func TestPipelineToDeadNode(t *testing.T) {
	c := newCluster(t, 2, func(cfg *Config) { cfg.Patience = 300 * time.Millisecond })
	c.nodes[0].ln.Close()
	cl := c.dial()
	start := time.Now()
	for range 20 {
		cl.send("GET " + key(0, 2))
	}
	for range 20 {
		if got := cl.reply(); !strings.HasPrefix(got, "-TRYAGAIN") {
			t.Fatalf("got %q", got)
		}
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("20 commands to a dead node were answered after %v, the patience is 300 ms", d)
	}
}

// A node may be silent for long because of a large request, but not if it cannot be reached any
// more, whichever clients use it.
func TestLargeRequestToUnreachableNode(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Patience, cfg.Silence = 2*time.Second, 250*time.Millisecond })
	cl := c.dial()
	cl.send("GET k", "SET k "+strings.Repeat("x", 200<<10))
	cl.want("$-1", "+OK") // both pipes are open
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	c.nodes[0].ln.Close()
	defer close(gate)
	start := time.Now()
	cl.send("SET k " + strings.Repeat("y", 200<<10))
	if got := cl.reply(); !strings.HasPrefix(got, "-ERR") {
		t.Errorf("got %q", got)
	}
	if took, patience := time.Since(start), order.LargePatience*250*time.Millisecond; took > patience-time.Second {
		t.Errorf("answered after %v, and a node that works on it may take %v", took, patience)
	}
	start = time.Now()
	for range 5 {
		cl.send("GET k", "SET k "+strings.Repeat("z", 200<<10))
		parked := "-TRYAGAIN no node could take the command in time, it was not executed; try again"
		cl.want(parked, parked)
	}
	if took := time.Since(start); took > 5*2*time.Second/2 {
		t.Errorf("five more commands of both kinds were answered after %v, and the node had not been reached for longer than the patience", took)
	}
}

// A long pipeline of commands that may take a node long leaves room on the large lane: another client's such command
// is not behind all of it.
func TestHeavyPipelineLeavesRoom(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	n := c.nodes[0]
	first, other := c.dial(), c.dial()
	for range 100 { // what is known of replies is how large the last ones were
		first.send("BITCOUNT k")
		first.reply()
	}
	other.send("BITCOUNT k")
	other.reply()
	gate := make(chan struct{})
	n.set(func(n *fakeNode) { n.gate, n.log = gate, nil })
	const commands = 1000
	first.send(slices.Repeat([]string{"BITCOUNT k"}, commands)...)
	eventually(t, "some of the pipeline is on its way", func() bool { return c.stats().Inflight == maxLarge })
	other.send("BITCOUNT other")
	eventually(t, "the other's command is on its way", func() bool { return c.stats().Inflight == maxLarge+1 })
	close(gate)
	other.reply()
	for range commands {
		first.reply()
	}
	if log := n.executed(); len(log) != commands+1 || log[maxLarge] != "BITCOUNT other" {
		t.Errorf("the other's command is number %d of %d", slices.Index(log, "BITCOUNT other"), len(log))
	}
}

// Replies that are early because another node is slow stay within the bound.
func TestEarlyRepliesAreBounded(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	slow, fast := key(0, 2), key(1, 2)
	const size = 256 << 10
	cl := c.dial()
	cl.send("SET "+slow+" a", "SET "+fast+" "+strings.Repeat("x", size), "GET "+fast)
	cl.want("+OK", "+OK")
	cl.reply()
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	lines := []string{"GET " + slow}
	for range 500 {
		lines = append(lines, "GET "+fast)
	}
	other := c.dial()
	other.send(lines...)
	kept := func() (most int) {
		done := make(chan struct{})
		w := c.proxy.workers[0]
		w.loop.Post(func() {
			for _, s := range w.clients {
				most = max(most, s.earlyLive)
			}
			close(done)
		})
		<-done
		return most
	}
	eventually(t, "early replies", func() bool { return kept() > 4*size && c.stats().Inflight == 1 })
	// This many were on their way before the proxy knew how large they are.
	if got, want := kept(), maxReplyBytes/firstReply*(size+64); got > want {
		t.Errorf("a session keeps %d bytes of early replies, want at most %d", got, want)
	}
	close(gate)
	for range lines {
		other.reply()
	}
}

// The parts of a reply from several nodes count as the session's memory until the reply is
// complete.
func TestGatheredRepliesCount(t *testing.T) {
	c := newTicketCluster(t, 2)
	a, b := key(0, 2), key(1, 2)
	value := hugeValue(1 << 20)
	cl := c.dial()
	c.nodes[0].set(func(n *fakeNode) { n.data[a] = value })
	c.nodes[1].set(func(n *fakeNode) { n.data[b] = value[1:] })
	kept := func(what string, most, least int) {
		eventually(t, what, func() bool {
			n := c.stats().Buffers
			return int64(least) <= n && n <= int64(most)
		})
	}
	for _, large := range []bool{true, false} {
		gate := make(chan struct{})
		c.nodes[0].set(func(n *fakeNode) {
			if !large {
				n.tickets = nil
			}
		})
		c.nodes[1].set(func(n *fakeNode) { n.gate = gate })
		cl.send("MGET " + a + " " + b)
		kept("a part of MGET", 2<<20, 1<<20)
		close(gate)
		cl.want("*2 " + text(value) + " " + text(value[1:]))
		kept("the end of MGET", 1<<19, 0)
	}
	gate, locked := make(chan struct{}), make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) {
		n.data = map[string]string{}
		for i := range 100 {
			n.data[a+strings.Repeat("x", 30<<10)+strconv.Itoa(i)] = ""
		}
	})
	go c.nodes[1].set(func(n *fakeNode) {
		n.data = map[string]string{}
		close(locked)
		<-gate
	})
	came(t, "the lock of the node", locked)
	cl.send("KEYS *")
	kept("a part of KEYS", 8<<20, 1<<20)
	close(gate)
	if got := len(strings.Fields(cl.reply())); got < 20 {
		t.Errorf("KEYS has %d words", got)
	}
	kept("the end of KEYS", 1<<19, 0)
}

// A client that requests much at once and reads a little later is served, not closed.
func TestBurstOfLargeReplies(t *testing.T) {
	c := newCluster(t, 1)
	w := c.dial()
	w.send("SET k " + strings.Repeat("x", 512<<10))
	w.want("+OK")
	cl := c.dial()
	var lines []string
	for range 200 {
		lines = append(lines, "GET k")
	}
	cl.send(lines...)
	eventually(t, "the proxy cannot send more", func() bool { return c.stats().Buffers > 512<<10 })
	for range lines {
		if got := cl.reply(); len(got) < 512<<10 {
			t.Fatalf("got %.40q", got)
		}
	}
}

// Clients that close their sending side get all replies, whatever made the session pause in
// between.
func TestHalfClosedClientThatStalls(t *testing.T) {
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	c := newCluster(t, 1)
	for _, tail := range [][]string{{"SET a 1", "DBSIZE"}, {"*1\r\n"}} {
		for range rounds {
			cl := c.dial()
			lines := make([]string, 200)
			for i := range lines {
				lines[i] = "COMMAND" // long replies: the output fills up
			}
			if len(tail) == 1 {
				cl.send(lines...)
				if _, err := cl.Write([]byte(tail[0])); err != nil { // the beginning of a command
					t.Fatal(err)
				}
			} else {
				cl.send(append(lines, tail...)...)
			}
			if err := cl.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			for range lines {
				cl.reply()
			}
			if len(tail) == 2 {
				cl.want("+OK", ":1")
			}
			cl.wantClosed()
		}
	}
}

// A client that waits for a reply is not idle.
func TestIdleTimeoutBeginsWithTheReply(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	c.setTimeout("1")
	cl.send("SET a 1")
	cl.want("+OK")
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	cl.send("GET a")
	time.Sleep(1500 * time.Millisecond)
	close(gate)
	cl.want("$1 1")
	cl.send("PING")
	cl.want("+PONG")
}

// Parked commands of many sessions do not flood the node that refuses them.
func TestParkedCommandsAreNoStorm(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	c.nodes[0].set(func(n *fakeNode) { n.refuse = func(string) string { return "-DUNLINWAIT\r\n" } })
	const clients = 200
	for range clients {
		c.dial().send("GET k")
	}
	eventually(t, "all are parked", func() bool { return c.stats().Parking == clients })
	begun, before := time.Now(), c.stats().PipeRequests
	time.Sleep(time.Second)
	got := c.stats().PipeRequests - before
	if took := time.Since(begun); float64(got) > 20*clients*took.Seconds() {
		t.Errorf("%d parked commands made %d requests in %v, want at most %d in a second", clients, got, took, 20*clients)
	}
}

func TestHTTPBodyIsNotExecuted(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	if _, err := cl.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\n\r\nSET k evil\r\n")); err != nil {
		t.Fatal(err)
	}
	cl.wantClosed()
	after := c.dial()
	after.send("EXISTS k")
	after.want(":0")
}
