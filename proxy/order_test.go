package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/ring"
)

// Interleavings in which a client's commands could be reordered. Each of these tests failed once.

// RETRY must not pass a command of another session that the node is about to refuse: the next
// command of that session would be executed before it.
func TestRetryWaitsForEverybodysCommands(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	a, b := c.dial(), c.dial()
	a.send("GET x")
	a.want("$-1")
	b.send("PING")
	b.want("+PONG")
	gate := make(chan struct{})
	refuse := true
	c.nodes[0].set(func(n *fakeNode) {
		n.gate = gate
		n.refuse = func(string) string {
			if refuse {
				refuse = false // the take-over ends right after the first refusal
				return "-DUNLINWAIT\r\n"
			}
			return ""
		}
	})
	inflight := func(n int) { eventually(t, "in flight", func() bool { return c.stats().Inflight == n }) }
	a.send("EXISTS k")
	inflight(1)
	b.send("SET k 1") // in the pipe, behind a's command
	inflight(2)
	gate <- struct{}{} // a's command is refused; b's will be too
	eventually(t, "the refusal", func() bool { return c.stats().Refusals == 1 })
	c.retry() // the fault would appear after a retry
	b.send("SET k 2")
	eventually(t, "the proxy has read it", func() bool { return c.stats().Commands[command.Set] == 2 })
	c.retry()
	close(gate)
	b.want("+OK", "+OK")
	sets := slices.DeleteFunc(c.nodes[0].executed(), func(e string) bool { return !strings.HasPrefix(e, "SET") })
	if !slices.Equal(sets, []string{"SET k 1", "SET k 2"}) {
		t.Errorf("the node executed %q, want SET k 1 before SET k 2", sets)
	}
}

// The same by chance: several clients pipeline while the node refuses at random.
func TestOrderBesideRefusals(t *testing.T) {
	// The patience is long, because the test is about order, not about time.
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Patience = 20 * time.Second })
	count := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string {
			if count++; count%1000 == 0 {
				return "-DUNLINWAIT\r\n"
			}
			return ""
		}
	})
	for range 8 {
		o := c.dial()
		go func() {
			for {
				if _, err := o.Write([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")); err != nil {
					return
				}
				if _, err := o.r.ReadBytes('\n'); err != nil {
					return
				}
			}
		}()
	}
	b := c.dial()
	const n = 5000
	go func() {
		for i := range n {
			v := fmt.Sprint(i)
			_, _ = fmt.Fprintf(b, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", len(v), v)
		}
	}()
	for range n {
		b.want("+OK")
	}
	last := -1
	for _, e := range c.nodes[0].executed() {
		var v int
		if _, err := fmt.Sscanf(e, "SET k %d", &v); err != nil {
			continue
		}
		if v < last {
			t.Fatalf("SET k %d was executed after SET k %d", v, last)
		}
		last = v
	}
}

// A census is asked in rounds; a large write that the client sent later must not pass it.
func TestFlushIsNotPassedByALargeWrite(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	cl.send("FLUSHALL")
	eventually(t, "the large pipe opens", func() bool { return c.stats().PipesOpen > 0 })
	cl.send("SET k " + strings.Repeat("x", 100<<10))
	cl.want("+OK", "+OK")
	cl.send("EXISTS k")
	cl.want(":1")
}

// A redirected command follows a newer table rather than the old -MOVED.
func TestNewerTableWinsOverMoved(t *testing.T) {
	c := newCluster(t, 2)
	k := key(0, 2)
	cl := c.dial()
	cl.send("GET " + k)
	cl.want("$-1")
	c.nodes[1].ln.Close() // it cannot be reached, but is still a member
	there := c.nodes[1].member().Addr
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string { return fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte(k)), there) }
	})
	cl.send("SET " + k + " 1")
	eventually(t, "the refusal", func() bool { return c.stats().Parking > 0 })
	c.nodes[0].set(func(n *fakeNode) { n.refuse = nil })
	c.route(func(int) int { return 0 })
	cl.want("+OK")
}

func TestMovedIsFollowedForOneKeyOfMany(t *testing.T) {
	c := newCluster(t, 2)
	k := key(0, 2)
	there := c.nodes[1].member().Addr
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string { return fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte(k)), there) }
	})
	cl := c.dial()
	cl.send("SET "+k+" 1", "MGET "+k, "DEL "+k)
	cl.want("+OK", "*1 $1 1", ":1")
}

// A node that has left the table still answers the commands that it has received.
func TestNodeThatLeavesAnswersFirst(t *testing.T) {
	c := newCluster(t, 2)
	k := key(0, 2)
	cl := c.dial()
	cl.send("SET " + k + " 1")
	cl.want("+OK")
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	cl.send("INCR " + k)
	eventually(t, "in flight", func() bool { return c.stats().Inflight == 1 })
	c.nodes = c.nodes[1:]
	c.route(func(int) int { return 0 })
	eventually(t, "the table", func() bool { return c.stats().Epoch == 2 })
	close(gate)
	cl.want(":2")
}

func TestOlderTableChangesNothing(t *testing.T) {
	c := newCluster(t, 1)
	old := c.proxy.table.Load()
	c.route(func(int) int { return 0 })
	c.proxy.SetTable(old)
	if got := c.stats().Epoch; got != 2 {
		t.Errorf("epoch %d after an older table, want 2", got)
	}
}

// Replies are in the protocol that the client used when it sent the command.
func TestVersionOfGatheredReplies(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	cl.send("CLIENT LIST", "HELLO 3")
	if got := cl.reply(); got[0] != '$' {
		t.Errorf("CLIENT LIST before HELLO 3 is answered %.10q, want a RESP2 bulk", got)
	}
	if got := cl.reply(); got[0] != '%' {
		t.Errorf("HELLO 3 is answered %.10q, want a map", got)
	}
}

// A part of a split command and a single command that are both redirected take the same way, in
// order.
func TestRedirectedPartIsNotPassed(t *testing.T) {
	c := newCluster(t, 2)
	k := key(0, 2)
	other := k + "x"
	for i := 0; ring.PartitionOf([]byte(other))%2 != 0; i++ {
		other = fmt.Sprintf("%s%d", k, i)
	}
	there := c.nodes[1].member().Addr
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(key string) string {
			if key == k {
				return fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte(k)), there)
			}
			return ""
		}
	})
	cl := c.dial()
	for range 20 {
		cl.send("MSET "+other+" 1 "+k+" 1", "SET "+k+" 2", "GET "+k)
		cl.want("+OK", "+OK", "$1 2")
	}
}

// Two nodes that do not obey the same table yet redirect to each other. The command must not stay
// at the node that it happened to reach when it had been redirected often enough.
func TestNodesThatPointToEachOther(t *testing.T) {
	c := newCluster(t, 2)
	k := key(1, 2)
	moved := func(to int) string {
		return fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte(k)), c.nodes[to].member().Addr)
	}
	late := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string {
			if late++; late <= 2 {
				return moved(1)
			}
			return ""
		}
	})
	c.nodes[1].set(func(n *fakeNode) { n.refuse = func(string) string { return moved(0) } })
	cl := c.dial()
	cl.send("SET " + k + " 1")
	cl.want("+OK")
}

// Commands that copy a value travel separately from small commands, because they may take long,
// however short they are.
func TestHeavyCommandsTravelApart(t *testing.T) {
	c := newCluster(t, 1)
	c.nodes[0].set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) { return ":1\r\n", strings.HasPrefix(args[0], "COPY") }
	})
	cl := c.dial()
	cl.send("SET k v")
	cl.want("+OK")
	before := c.stats().PipesOpen
	cl.send("COPY {k} {k}copy", "GET k", "COPY {k} {k}copy")
	cl.want(":1", "$1 v", ":1")
	if now := c.stats().PipesOpen; now != before+1 {
		t.Errorf("%d pipes are open, %d before", now, before)
	}
}

// Replies that nobody wants are dropped in their turn, even if they are early or are errors of the
// proxy.
func TestRepliesThatAreNotWanted(t *testing.T) {
	c := newCluster(t, 2)
	slow, fast := key(0, 2), key(1, 2)
	cl := c.dial()
	cl.send("SET "+slow+" a", "SET "+fast+" b")
	cl.want("+OK", "+OK")
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	cl.send("GET "+slow, "CLIENT REPLY SKIP", "GET "+fast, "GET "+fast, "CLIENT REPLY SKIP",
		"MSETNX "+slow+" 1 "+fast+" 1",
		"CLIENT REPLY SKIP", "MGET "+slow+" "+fast, "CLIENT REPLY OFF", "GET "+slow, "GET "+fast, "PING", "CLIENT REPLY ON", "GET "+fast)
	eventually(t, "the fast node executes", func() bool { return len(c.nodes[1].executed()) >= 4 })
	close(gate)
	cl.want("$1 a", "$1 b", "+OK", "$1 b")
}

// TestNoTouch checks that a client that has said CLIENT NO-TOUCH uses other pipes, once all members
// understand that.
func TestNoTouch(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	cl := c.dial()
	want := func(kinds ...string) {
		t.Helper()
		cl.send("GET k")
		cl.want("$-1")
		c.nodes[0].set(func(n *fakeNode) {
			if !slices.Equal(n.kinds, kinds) {
				t.Errorf("pipes %q were opened, want %q", n.kinds, kinds)
			}
		})
	}
	cl.send("CLIENT NO-TOUCH on")
	cl.want("+OK")
	want("common")
	c.level = ring.Level
	c.route(func(int) int { return 0 })
	c.retry() // the loop has the table
	want("common", "common-no-touch")
	cl.send("CLIENT NO-TOUCH off")
	cl.want("+OK")
	want("common", "common-no-touch")
	cl.send("RESET", "CLIENT NO-TOUCH on", "SET k 1", "CLIENT NO-TOUCH off", "GET k", "DEL k")
	cl.want("+RESET", "+OK", "+OK", "+OK", "$1 1", ":1")
	want("common", "common-no-touch")
}
