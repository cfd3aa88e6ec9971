package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// The reply to WAIT is the least number that any node reports, as soon as it is enough or the time
// is up.
func TestWaitAsksAllNodes(t *testing.T) {
	c := newCluster(t, 3)
	for i, n := range c.nodes {
		n.set(func(n *fakeNode) { n.copies = i + 1 })
	}
	conn := c.dial()
	conn.send("WAIT 1 0")
	conn.want(":1")
	conn.send("WAIT -1 0", "WAIT x 0", "WAIT 1 -1", "SET a 1")
	conn.want(":1", "-ERR value is not an integer or out of range", "-ERR timeout is negative", "+OK")
	begun := time.Now()
	conn.send("WAIT 2 50")
	conn.want(":1")
	if took := time.Since(begun); took < 50*time.Millisecond {
		t.Errorf("WAIT for more than there are was answered after %v", took)
	}
	conn.send("WAIT 2 0", "PING")
	c.nodes[0].set(func(n *fakeNode) { n.copies = 2 })
	conn.want(":2", "+PONG")
}

// Rounds may continue for as long as the client waits, and keep nothing of earlier rounds.
func TestRoundsOfWaitAddNothing(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	const rounds = 5
	reached, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	seen := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.owns = func(p uint16) bool {
			if p == 0 {
				if seen++; seen == rounds {
					close(reached)
					<-goOn
				}
			}
			return true
		}
	})
	c.dial().send("WAIT 9 0")
	came(t, "the last round", reached)
	var kept []int
	c.each(func(l *netloop.Loop) {
		for _, n := range c.proxy.workers[l.Index()].order.Nodes() {
			n.Each(func(p *order.Pipe) {
				if r := p.Front(); r != nil {
					if c, ok := r.Part.(*copyWaits); ok {
						kept = append(kept, c.copies.Rounds.Questions())
					}
				}
			})
		}
	})
	if len(kept) != 1 || kept[0] != 1 {
		t.Errorf("%v questions are kept, want that of one round", kept)
	}
}

// A client that has closed its sending side gets its replies, but the proxy does not wait for a
// WAIT of it.
func TestWaitOfAClientThatHasFinished(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	conn := c.dial()
	conn.send("SET k v", "WAIT 9 0")
	// The end of input is read before the command is executed if the command had to wait for room
	// in the output.
	eventually(t, "the client is known to have finished", func() bool {
		known := false
		c.each(func(l *netloop.Loop) {
			for _, s := range c.proxy.workers[l.Index()].clients {
				if known = s.input == stalled; known {
					s.atLeast(ended)
				}
			}
		})
		return known
	})
	close(gate)
	conn.want("+OK")
	conn.wantClosed()
}

// A command goes on that had filled what a waiting session keeps of its input before it was whole.
func TestLongCommandBehindWait(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	conn := c.dial()
	conn.send("WAIT 9 50", "SET k "+strings.Repeat("v", 5*session.KeepBlocked))
	conn.want(":0", "+OK")
}

// slowlyCounting is a proxy with one worker over nodes that answer EACH when the test says so.
func slowlyCounting(t *testing.T, nodes int) *rig {
	c := newCluster(t, nodes, oneLoop(t))
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.later = func(args []string) bool { return args[0] == "DUNLIN" && args[1] == "EACH" }
		})
	}
	c.level = ring.Level
	c.route(func(p int) int { return p % nodes })
	return c
}

// waits waits until so many clients of the worker wait for copies.
func (c *rig) waits(count int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%d clients wait for copies", count), func() (ok bool) {
		c.onLoop(func(w *worker) { ok = len(w.copyWaits.waiting) == count })
		return ok
	})
}

// TestWaitsAskTogether: however many clients wait, each node has one question, and nobody waits behind them. A round
// counts for those who came before it.
func TestWaitsAskTogether(t *testing.T) {
	c := slowlyCounting(t, 2)
	const clients = 3 * wokenAtOnce
	first := c.dial()
	first.send("WAIT 1 0")
	for _, n := range c.nodes {
		n.waiting(1)
		n.set(func(n *fakeNode) { n.copies = 1 })
	}
	var others []*conn
	for i := range clients {
		cl := c.dial()
		cl.send(fmt.Sprintf("WAIT %d 0", 1+i%2))
		others = append(others, cl)
	}
	c.waits(1 + clients)
	round := func() {
		for _, n := range c.nodes {
			n.waiting(1)
			n.complete(0, "")
		}
	}
	round()
	first.want(":1")
	first.send("SET k v", "GET k")
	first.want("+OK", "$1 v")
	c.waits(clients)
	round()
	for i := 0; i < clients; i += 2 {
		others[i].want(":1")
	}
	c.waits(clients / 2)
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.copies = 2 })
	}
	round()
	for i := 1; i < clients; i += 2 {
		others[i].want(":2")
	}
	c.waits(0)
}

// TestWaitEndsByItself: neither the end of its time, nor CLIENT UNBLOCK, nor the end of its client waits for a node.
func TestWaitEndsByItself(t *testing.T) {
	c := slowlyCounting(t, 1)
	cl, other := c.dial(), c.dial()
	cl.send("CLIENT ID")
	id := strings.TrimPrefix(cl.reply(), ":")
	begun := time.Now()
	cl.send("WAIT 1 50")
	cl.want(":0")
	if took := time.Since(begun); took < 50*time.Millisecond {
		t.Errorf("WAIT ended after %v", took)
	}
	for how, want := range map[string]string{
		"": ":0", " TIMEOUT": ":0", " ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK",
	} {
		cl.send("WAIT 1 0", "GET k")
		c.waits(1)
		other.send("CLIENT UNBLOCK " + id + how)
		other.want(":1")
		cl.want(want, "$-1")
		c.waits(0)
	}
	cl.send("WAIT 1 0")
	c.waits(1)
	cl.Close()
	c.waits(0)
	c.nodes[0].waiting(1) // the question of all that
}

// TestWaitAfterARefusal: a node that has a doubt, or an answer that is no count, counts for nothing.
func TestWaitAfterARefusal(t *testing.T) {
	c := slowlyCounting(t, 1)
	n, cl := c.nodes[0], c.dial()
	n.set(func(n *fakeNode) { n.copies = 1 })
	cl.send("WAIT 1 0")
	for _, reply := range []string{"-DUNLINWAIT 1\r\n", "-TRYAGAIN once more\r\n", "+OK\r\n", ""} {
		n.waiting(1)
		n.complete(0, reply)
	}
	cl.want(":1")
}
