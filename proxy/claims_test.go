package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// claimCluster is a proxy with one worker over nodes at which claims and pops wait. It returns a key of each.
func claimCluster(t *testing.T, nodes int) (*rig, []string) {
	c := newCluster(t, nodes, oneLoop(t))
	var keys []string
	for i, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.later = func(args []string) bool { return args[0] == "DUNLIN" || args[0] == "BLPOP" }
		})
		keys = append(keys, key(i, nodes))
	}
	c.level = ring.Level
	c.route(func(p int) int { return p % nodes })
	return c, keys
}

// newest waits until a node has one more command that it answers later, and returns it.
func (n *fakeNode) newest(count int) string {
	n.t.Helper()
	n.waiting(count)
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.pending[count-1].args, " ")
}

// told waits until the node was told something.
func (n *fakeNode) told(line string) {
	n.t.Helper()
	eventually(n.t, line, func() bool { return slices.Contains(n.executed(), line) })
}

// newestWants checks what the node was sent last, without the age of a claim.
func (n *fakeNode) newestWants(count int, want string) {
	n.t.Helper()
	got := n.newest(count)
	if rest, ok := strings.CutPrefix(got, "DUNLIN CLAIM "); ok {
		_, rest, _ = strings.Cut(rest, " ")
		got = "DUNLIN CLAIM " + rest
	}
	if got != want {
		n.t.Fatalf("%s is sent %q, want %q", n.name, got, want)
	}
}

// TestClaims: the owner that is ready is asked for its element, and the other claims end.
func TestClaims(t *testing.T) {
	c, k := claimCluster(t, 2)
	a, b, cl := c.nodes[0], c.nodes[1], c.dial()
	cl.send("BLPOP "+k[0]+" "+k[1]+" 0", "GET x")
	a.newestWants(1, "DUNLIN CLAIM l "+k[0])
	b.newestWants(1, "DUNLIN CLAIM l "+k[1])
	b.complete(0, "*2\r\n:0\r\n:5\r\n")
	b.newestWants(1, "BLPOP "+k[1]+" 0.001")
	b.told("PASS l 5 " + k[1]) // behind the pop
	b.complete(0, "*2\r\n"+bulk(k[1])+bulk("e"))
	cl.want(fmt.Sprintf("*2 $%d %s $1 e", len(k[1]), k[1]), "$-1")
	a.told("CANCEL 1")
	a.complete(0, "-ERR canceled: the client has disconnected\r\n")
	cl.send("GET y")
	cl.want("$-1")
}

// TestClaimsGoOn: a pop that finds nothing goes on with what else is ready, and claims the key again.
func TestClaimsGoOn(t *testing.T) {
	c, k := claimCluster(t, 3)
	cl := c.dial()
	cl.send("BLPOP " + strings.Join(k, " ") + " 0")
	for _, n := range c.nodes {
		n.waiting(1)
	}
	c.nodes[2].complete(0, "*2\r\n:0\r\n:7\r\n")
	c.nodes[2].newestWants(1, "BLPOP "+k[2]+" 0.001")
	c.nodes[1].complete(0, "*2\r\n:0\r\n:8\r\n")
	c.nodes[0].complete(0, "*2\r\n:0\r\n:9\r\n")
	other := c.dial()
	other.send("GET "+k[0], "GET "+k[1]) // behind what was completed
	other.want("$-1", "$-1")
	c.nodes[2].waiting(1) // it is not claimed while it is popped from
	c.nodes[2].complete(0, "*-1\r\n")
	c.nodes[2].newestWants(1, "DUNLIN CLAIM l "+k[2])
	c.nodes[0].newestWants(1, "BLPOP "+k[0]+" 0.001")
	c.nodes[0].complete(0, "*2\r\n"+bulk(k[0])+bulk("e"))
	cl.want(fmt.Sprintf("*2 $%d %s $1 e", len(k[0]), k[0]))
	c.nodes[1].told("PASS l 8 " + k[1])
	c.nodes[2].told("CANCEL 3")
}

// TestClaimsComeBack: a claim that its node refuses, or whose pipe breaks, is made again.
func TestClaimsComeBack(t *testing.T) {
	c, k := claimCluster(t, 2)
	cl := c.dial()
	cl.send("BLPOP " + k[0] + " " + k[1] + " 0")
	a, b := c.nodes[0], c.nodes[1]
	a.waiting(1)
	b.waiting(1)
	a.complete(0, "-DUNLINWAIT 1\r\n")
	a.newestWants(1, "DUNLIN CLAIM l "+k[0])
	b.cut()
	b.set(func(n *fakeNode) { n.pending = nil })
	b.newestWants(1, "DUNLIN CLAIM l "+k[1])
	b.complete(0, "*2\r\n:0\r\n:0\r\n")
	b.newestWants(1, "BLPOP "+k[1]+" 0.001")
	b.complete(0, "*2\r\n"+bulk(k[1])+bulk("e"))
	cl.want(fmt.Sprintf("*2 $%d %s $1 e", len(k[1]), k[1]))
}

// TestClaimsWithoutAnOwner: an owner that does not answer holds up the others for a moment only.
func TestClaimsWithoutAnOwner(t *testing.T) {
	c, k := claimCluster(t, 2)
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	defer close(gate)
	cl := c.dial()
	begun := time.Now()
	cl.send("BLPOP " + k[0] + " " + k[1] + " 0")
	b := c.nodes[1]
	b.waiting(1)
	b.complete(0, "*2\r\n:0\r\n:0\r\n")
	b.newestWants(1, "BLPOP "+k[1]+" 0.001")
	if waited := time.Since(begun); waited < order.FirstClaims {
		t.Errorf("the proxy has waited for %v, want %v", waited, order.FirstClaims)
	}
	b.complete(0, "*2\r\n"+bulk(k[1])+bulk("e"))
	cl.want(fmt.Sprintf("*2 $%d %s $1 e", len(k[1]), k[1]))
}

// TestClaimsEnd: a limit, and a client that leaves, end the claims; nothing is left of them.
func TestClaimsEnd(t *testing.T) {
	c, k := claimCluster(t, 2)
	cl := c.dial()
	line := "BLPOP " + k[0] + " " + k[1]
	begun := time.Now()
	cl.send(line + " 0.5")
	c.nodes[0].waiting(1)
	c.nodes[1].waiting(1)
	eventually(t, "the client counts as blocked", func() bool { return c.stats().Blocked == 1 })
	cl.want("*-1")
	eventually(t, "the client counts as blocked no more", func() bool { return c.stats().Blocked == 0 })
	if waited := time.Since(begun); waited < 500*time.Millisecond {
		t.Errorf("the limit ended after %v", waited)
	}
	c.nodes[0].told("CANCEL 1")
	c.nodes[1].told("CANCEL 1")
	cl.send(line + " 0")
	c.nodes[0].waiting(2)
	c.nodes[1].waiting(2)
	c.leave(cl)
	c.nodes[0].told("CANCEL 2")
	c.nodes[1].complete(1, "*2\r\n:0\r\n:3\r\n") // just before it is told
	c.nodes[1].told("PASS l 3 " + k[1])
}

// TestClaimsWithoutMemory: the claims of a client that has no memory left end with an error.
func TestClaimsWithoutMemory(t *testing.T) {
	c, k := claimCluster(t, 2)
	cl := c.dial()
	cl.send("BLPOP " + k[0] + " " + k[1] + " 0")
	c.nodes[0].waiting(1)
	c.nodes[1].waiting(1)
	c.nodes[0].complete(0, "-OOM command not allowed when used memory > 'maxmemory'.\r\n")
	cl.want("-OOM command not allowed when used memory > 'maxmemory'.")
	c.nodes[1].told("CANCEL 1")
}

// TestUnblockOfWhoHasLeft: CLIENT UNBLOCK wakes nobody whose reply has come when it had left, and whose connection
// the loop has not closed yet.
func TestUnblockOfWhoHasLeft(t *testing.T) {
	c, k := claimCluster(t, 1)
	cl, other := c.dial(), c.dial()
	cl.send("CLIENT ID")
	id := strings.TrimPrefix(cl.reply(), ":")
	cl.send("BLPOP " + k[0] + " 0")
	c.nodes[0].waiting(1)
	eventually(t, "the client counts as blocked", func() bool { return c.stats().Blocked == 1 })
	c.each(func(*netloop.Loop) {
		for _, s := range c.proxy.workers[0].clients {
			if s.blocking {
				s.giveBack(s.waits, []byte("*-1\r\n"))
			}
		}
	})
	other.send("CLIENT UNBLOCK " + id)
	other.want(":0")
}

// TestClaimsOfMoves: BLMOVE claims the key that it takes from, and then the owner of the other key
// moves an element. The turn ends when that is answered.
func TestClaimsOfMoves(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t), relaxedSlots)
	k := []string{key(0, 2), key(1, 2)}
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.later = func(args []string) bool { return args[0] == "DUNLIN" } })
	}
	c.level = ring.Level
	c.route(func(p int) int { return p % 2 })
	a, b, cl := c.nodes[0], c.nodes[1], c.dial()
	cl.send("BLMOVE "+k[0]+" "+k[1]+" LEFT right 0", "GET x")
	a.newestWants(1, "DUNLIN CLAIM l "+k[0])
	a.complete(0, "*2\r\n:0\r\n:5\r\n")
	b.newestWants(1, "DUNLIN GATHER LMOVE "+k[0]+" "+k[1]+" LEFT right")
	if slices.Contains(a.executed(), "PASS l 5 "+k[0]) {
		t.Error("the turn has ended before the element is moved")
	}
	b.complete(0, "$-1\r\n")
	a.told("PASS l 5 " + k[0])
	a.newestWants(1, "DUNLIN CLAIM l "+k[0])
	a.complete(0, "*2\r\n:0\r\n:6\r\n")
	b.newestWants(1, "DUNLIN GATHER LMOVE "+k[0]+" "+k[1]+" LEFT right")
	b.complete(0, "$1\r\ne\r\n")
	cl.want("$1 e", "$-1")
	a.told("PASS l 6 " + k[0])
	cl.send("BRPOPLPUSH " + k[1] + " " + k[0] + " 0.05")
	b.newestWants(1, "DUNLIN CLAIM l "+k[1])
	cl.want("*-1")
	cl.send("BLMOVE " + k[0] + " " + k[1] + " UP LEFT 0")
	a.told("BLMOVE " + k[0] + " " + k[0] + " UP LEFT 0")
}
