package node

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// onItsLoop calls f on the only loop of the node.
func onItsLoop(t *testing.T, n *Node, f func(w *worker)) {
	t.Helper()
	if err := n.cfg.Group.Each(func(*netloop.Loop) { f(n.workers[0]) }); err != nil {
		t.Fatal(err)
	}
}

// waiter returns the connection that waits for the hold, on its loop.
func waiter(w *worker, h *engine.Hold) *conn { return w.holdQueues[h].Front().Value.(*conn) }

// TestPatienceIsForAllHolds: what a request waits for one hold after another counts together.
func TestPatienceIsForAllHolds(t *testing.T) {
	const partly = "ERR executed for some of the keys only: " +
		"a transaction has held the partition of another one for too long"
	for _, test := range []struct {
		name          string
		send          func(c *client)
		first, second string // keys whose partitions are held
		want          string
	}{
		{"in the input", func(c *client) { c.send("GET {k}") }, "{k}", "{k}", exec.ErrHeld},
		{"uploaded", func(c *client) { c.sendRaw(bigRequest(t, "SET {k} BIG", bigValue(300_000, 1))) }, "{k}", "{k}", exec.ErrHeld},
		{"a transaction that was planned in turns", func(c *client) {
			c.want("MULTI", "OK")
			c.want("DEL"+strings.Repeat(" {k}", 2*planAtOnce), "QUEUED")
			c.send("EXEC")
		}, "{k}", "{k}", exec.ErrHeld},
		{"between two keys", func(c *client) { c.send("MSET {j} x {k} y") }, "{j}", "{k}", partly},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startNode(t, func(c *Config) { c.Memory, c.Group = 64<<20, newGroup(t, 1) })
			n.holdPatience = time.Hour
			tellLoops(t, n)
			c := dial(t, n.Addr())
			h := holdPartition(n, test.first)
			test.send(c)
			eventually(t, "it waits", func() bool { return waitingFor(t, n, h) == 1 })
			var next *engine.Hold
			onItsLoop(t, n, func(w *worker) {
				waiter(w, h).queued.begun -= n.holdPatience // as if it had waited for so long
				h.End()
				next = holdPartition(n, test.second)
			})
			defer next.End()
			if got := c.next(); got != "(error) "+test.want {
				t.Errorf("the reply is %s", got)
			}
			c.want("GET {i}", "(nil)")
		})
	}
}

// TestPatienceBeforeAndBehindARewrite: so it does before and behind the work of a goroutine.
func TestPatienceBeforeAndBehindARewrite(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 64<<20, newGroup(t, 1) })
	n.holdPatience = time.Hour
	tellLoops(t, n)
	setLong(t, n, "{k}long")
	free := occupy(t, n)
	c := dial(t, n.Addr())
	h := holdPartition(n, "{k}")
	c.send("SETRANGE {k}long 3000000 x")
	eventually(t, "it waits", func() bool { return waitingFor(t, n, h) == 1 })
	onItsLoop(t, n, func(w *worker) { waiter(w, h).queued.begun -= n.holdPatience })
	h.End()
	eventually(t, "the command has begun", func() (begun bool) {
		onItsLoop(t, n, func(w *worker) { begun = w.Count.Commands[command.SetRange] == 1 })
		return begun
	})
	h = holdPartition(n, "{k}")
	defer h.End()
	free()
	if got := c.next(); got != "(error) "+exec.ErrHeld {
		t.Errorf("SETRANGE answers %s", got)
	}
}

// TestPatienceIsForOneRequest: a request that has waited for too long, and is executed since the hold
// has ended meanwhile, leaves the next one all its patience.
func TestPatienceIsForOneRequest(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	n.holdPatience = time.Hour
	tellLoops(t, n)
	c := dial(t, n.Addr())
	h, next := holdPartition(n, "{k}"), holdPartition(n, "{j}")
	c.sendLines("GET {k}", "GET {j}")
	eventually(t, "it waits", func() bool { return waitingFor(t, n, h) == 1 })
	onItsLoop(t, n, func(w *worker) { // as when the time is up
		cn := waiter(w, h)
		h.End()
		cn.leaveQueue()
		cn.goOnAfterHold(false)
	})
	if got := c.next(); got != "(nil)" {
		t.Errorf("the first request answers %s", got)
	}
	eventually(t, "the second one waits", func() bool { return waitingFor(t, n, next) == 1 })
	next.End()
	if got := c.next(); got != "(nil)" {
		t.Errorf("the second request answers %s", got)
	}
}

// TestPatienceOfARequestThatIsNotReached: an input that is left before its first request, since replies
// pile up, does not begin its patience anew.
func TestPatienceOfARequestThatIsNotReached(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	dial(t, n.Addr()).want("PING", "PONG")
	onItsLoop(t, n, func(w *worker) {
		for cn := range w.conns {
			cn.waited = time.Second
			w.end(w.begin(cn), 0, 0)
			if cn.waited != time.Second {
				t.Errorf("the request has waited for %v, want 1s", cn.waited)
			}
		}
	})
}
