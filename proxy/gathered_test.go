package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

func relaxedSlots(cfg *Config) { cfg.RelaxedSlots = true }

// gathers returns how many commands whose keys lie in several slots a node has not answered.
func (n *fakeNode) gathers() (got int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.pending {
		if d.args[0] == "DUNLIN" {
			got++
		}
	}
	return got
}

// TestGathered: a command whose keys lie in several slots goes to the owner of its home, behind all
// that its session has sent, and before all that follows.
func TestGathered(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t), relaxedSlots)
	c.level = ring.GatherLevel
	c.route(func(p int) int { return p % 2 })
	a, b := key(0, 2), key(1, 2)
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.later = func(args []string) bool { return args[0] == "EVAL" || args[0] == "DUNLIN" }
		})
	}
	cl, other := c.dial(), c.dial()
	asideA, asideB := key(2, 4), key(3, 4) // of other partitions of the same nodes
	sees := func(node, want int) {
		t.Helper()
		other.send("GET "+asideA, "GET "+asideB) // behind all that was sent
		other.want("$-1", "$-1")
		if got := c.nodes[node].gathers(); got != want {
			t.Errorf("node %d has got %d, want %d", node, got, want)
		}
	}
	cl.send("EVAL x 1 "+b, "SUNIONSTORE "+a+" "+b, "GET "+a, "SINTER "+b+" "+a)
	c.nodes[1].waiting(1)
	sees(0, 0)
	c.nodes[1].complete(0, "$1\r\nx\r\n")
	cl.want("$1 x")
	c.nodes[0].waiting(1)
	sees(0, 1)
	sees(1, 0)
	c.nodes[0].complete(0, ":7\r\n")
	cl.want(":7", "$-1")
	c.nodes[1].waiting(1)
	sees(1, 1)
	c.nodes[1].complete(0, "*0\r\n")
	cl.want("*0")
	cl.send("GET " + a)
	cl.want("$-1")
}

// TestGatheredOrNot: without the flag, below the level, and for other commands keys must lie in one slot.
func TestGatheredOrNot(t *testing.T) {
	a, b := key(0, 2), key(1, 2)
	f := func(level uint8, relaxed bool, line string, why []byte) {
		t.Helper()
		c := newCluster(t, 2, func(cfg *Config) { cfg.RelaxedSlots = relaxed })
		c.level = level
		c.route(func(p int) int { return p % 2 })
		c.retry()
		cl := c.dial()
		cl.send(line)
		cl.want(strings.TrimSpace(string(why)))
	}
	f(ring.GatherLevel, false, "SINTER "+a+" "+b, errCrossSlot)
	f(ring.GatherLevel-1, true, "SINTER "+a+" "+b, errCrossSlot)
	f(ring.ReserveLevel-1, true, "SMOVE "+a+" "+b+" x", errCrossSlot)
	f(ring.ReserveLevel-1, true, "BLMOVE "+a+" "+b+" LEFT LEFT 0", errNotGathered)
	f(ring.ReserveLevel, false, "BRPOPLPUSH "+a+" "+b+" 0", errCrossSlot)
	f(ring.GatherLevel, true, "SORT "+a+" BY w_* STORE "+b, errNotGathered)
	f(ring.GatherLevel, true, "EVAL return 2 "+a+" "+b, errNotGathered)
	f(ring.GatherLevel, true, "WATCH "+a+" "+b, errNotGathered)
}

// TestGatheredLong: a command that is too long to be copied is refused.
func TestGatheredLong(t *testing.T) {
	c := newCluster(t, 2, relaxedSlots)
	c.level = ring.ReserveLevel
	c.route(func(p int) int { return p % 2 })
	c.retry()
	c.nodes[0].set(func(n *fakeNode) { n.later = func(args []string) bool { return args[0] == "DUNLIN" } })
	cl := c.dial()
	line := "MSETNX " + key(0, 2) + " v " + key(1, 2) + " "
	cl.send(line + strings.Repeat("x", order.HugeRequest))
	c.nodes[0].waiting(1)
	c.nodes[0].complete(0, ":1\r\n")
	cl.want(":1")
	cl.send(line + strings.Repeat("x", 2*order.HugeRequest))
	cl.want(strings.TrimSpace(string(errLongGathered)))
}

// TestGatheredElsewhere: a command that its node refuses in the end goes to the next owner of its home.
func TestGatheredElsewhere(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t), relaxedSlots)
	c.level = ring.GatherLevel
	c.route(func(p int) int { return p % 2 })
	a, b := key(0, 2), key(1, 2)
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.later = func(args []string) bool { return args[0] == "DUNLIN" } })
	}
	cl := c.dial()
	cl.send("SUNIONSTORE " + a + " " + b)
	c.nodes[0].waiting(1)
	c.nodes[0].complete(0, fmt.Sprintf("-DUNLINWAIT %d\r\n", c.epoch+1)) // the proxy waits for this table
	c.route(func(int) int { return 1 })
	c.nodes[1].waiting(1)
	c.nodes[1].complete(0, ":3\r\n")
	cl.want(":3")
}
