package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
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
	select {
	case <-reached:
	case <-time.After(10 * time.Second):
		t.Fatalf("%d rounds in 10 s, want %d", seen, rounds)
	}
	var kept []int
	err := c.proxy.cfg.Group.Each(func(l *netloop.Loop) {
		for _, n := range c.proxy.workers[l.Index()].order.Nodes() {
			n.Each(func(p *order.Pipe) {
				if r := p.Front(); r != nil {
					if c, ok := r.Part.(*census); ok {
						kept = append(kept, c.question.Rounds.Questions())
					}
				}
			})
		}
	})
	if err != nil || len(kept) != 1 || kept[0] != 1 {
		t.Errorf("%v (%v) questions are kept, want that of one round", kept, err)
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
		err := c.proxy.cfg.Group.Each(func(l *netloop.Loop) {
			for _, s := range c.proxy.workers[l.Index()].clients {
				if known = s.input == stalled; known {
					s.atLeast(ended)
				}
			}
		})
		return err == nil && known
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
