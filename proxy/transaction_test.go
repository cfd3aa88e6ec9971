package proxy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

func relaxed(cfg *Config) { cfg.RelaxedMulti = true }

// A transaction goes to its node as one request, and the client gets its reply in its turn.
func TestTransaction(t *testing.T) {
	c := newCluster(t, 2)
	cl := c.dial()
	k := "{" + key(0, 2) + "}"
	cl.send("MULTI", "SET "+k+"a 1", "INCR "+k+"a", "GET "+k+"a", "EXEC", "GET "+key(1, 2), "GET "+k+"a")
	cl.want("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3 +OK :2 $1 2", "$-1", "$1 2")
	if log := c.nodes[0].executed(); len(log) != 5 || !strings.HasPrefix(log[0], "DUNLIN EXEC") {
		t.Errorf("the node executed %q", log)
	}
	cl.send("MULTI", "PING", "INCR "+k+"a", "CLIENT SETNAME me", "EXEC", "CLIENT GETNAME")
	cl.want("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3 +PONG :3 +OK", "$2 me")
	cl.send("MULTI", "PING", "EXEC", "MULTI", "EXEC")
	cl.want("+OK", "+QUEUED", "*1 +PONG", "+OK", "*0")
}

// A command whose count of keys is wrong goes where the others go: it adds no slot.
func TestTransactionWithoutKeys(t *testing.T) {
	c := newCluster(t, 2)
	cl := c.dial()
	k := key(1, 2)
	const wrong = "ZMPOP 0 x MIN"
	for _, lines := range [][]string{{wrong, "INCR " + k}, {"INCR " + k, wrong}, {"PING", wrong, wrong, "INCR " + k}, {wrong}} {
		cl.send("MULTI")
		cl.send(lines...)
		cl.send("EXEC")
		for range 1 + len(lines) {
			cl.reply()
		}
		if got := cl.reply(); !strings.HasPrefix(got, fmt.Sprintf("*%d ", len(lines))) {
			t.Errorf("EXEC of %q answers %q", lines, got)
		}
	}
}

// A node may be silent for long while it executes a transaction with a long command.
func TestHeavyTransactionIsWaitedFor(t *testing.T) {
	const silence = 250 * time.Millisecond // and a busy machine answers what is short sooner
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Silence = silence })
	gate := make(chan struct{})
	cl := c.dial()
	cl.send("SET {k} v", "MULTI", "INCR {k}n", "LCS {k} {k}")
	cl.want("+OK", "+OK", "+QUEUED", "+QUEUED")
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	time.AfterFunc(3*silence, func() { close(gate) })
	cl.send("EXEC")
	if got := cl.reply(); !strings.HasPrefix(got, "*2 :1") {
		t.Errorf("EXEC answers %q, want what the node answered after %v", got, 3*silence)
	}
}

// A watched key that changed keeps the transaction from being executed.
func TestWatch(t *testing.T) {
	c := newCluster(t, 2)
	cl, other := c.dial(), c.dial()
	k := key(0, 2)
	cl.send("WATCH "+k, "MULTI", "SET "+k+" 1", "EXEC")
	cl.want("+OK", "+OK", "+QUEUED", "*1 +OK")
	for _, end := range []string{"EXEC", "DISCARD", "UNWATCH", "RESET"} {
		cl.send("WATCH " + k)
		cl.want("+OK")
		other.send("INCR " + k)
		other.reply()
		if end == "DISCARD" || end == "EXEC" {
			cl.send("MULTI")
			cl.want("+OK")
		}
		cl.send(end)
		if got := cl.reply(); (got == "*-1") != (end == "EXEC") {
			t.Errorf("%s answers %s", end, got)
		}
		// EXEC has ended the watch.
		cl.send("MULTI", "GET other", "EXEC")
		cl.want("+OK", "+QUEUED", "*1 $-1")
	}
	// WATCH and the command that ends it are on their way together.
	cl.send("WATCH "+k, "UNWATCH", "WATCH "+k, "RESET", "SET "+k+" x", "MULTI", "PING", "EXEC")
	cl.want("+OK", "+OK", "+OK", "+RESET", "+OK", "+OK", "+QUEUED", "*1 +PONG")
	cl.send("WATCH "+k, "EXEC now", "SET "+k+" x", "MULTI", "PING", "EXEC")
	cl.want("+OK", "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command", "+OK", "+OK", "+QUEUED", "*1 +PONG")
	// If a transaction has no command on keys, the proxy still asks the node about the watched
	// keys.
	cl.send("WATCH "+k, "SET "+k+" y", "MULTI", "PING", "EXEC")
	cl.want("+OK", "+OK", "+OK", "+QUEUED", "*-1")
}

// The reply to an aborted transaction is null in either protocol, even if the proxy executes a part
// of it.
func TestAbortedInRESP3(t *testing.T) {
	c := newCluster(t, 1)
	c.nodes[0].set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) { return "_\r\n", len(args) > 1 && args[1] == "EXEC" }
	})
	cl := c.dial()
	cl.send("HELLO 3")
	cl.reply()
	cl.send("MULTI", "GET k", "EXEC", "MULTI", "GET k", "PING", "EXEC")
	cl.want("+OK", "+QUEUED", "_", "+OK", "+QUEUED", "+QUEUED", "_")
}

// The reply that the proxy assembles is bounded; all commands are executed nevertheless.
func TestTransactionRepliesAreBounded(t *testing.T) {
	tx := &transaction{parts: make([]slotPart, 2)}
	if !tx.fits(0, 2*maxReplies) || tx.fits(1, 1) {
		t.Error("want a single reply whatever its size, and not two")
	}
	if tx = (&transaction{parts: make([]slotPart, 2)}); !tx.fits(0, maxReplies/2) ||
		!tx.fits(1, maxReplies/2) || !tx.fits(1, maxReplies/2) || tx.fits(1, maxReplies/2+1) {
		t.Error("want as many bytes as may be put together")
	}
	if testing.Short() {
		t.Skip("reads 64 MiB")
	}
	cl := newCluster(t, 1).dial()
	cl.send("COMMAND DOCS")
	count := maxLocal/len(cl.reply()) + 2
	cl.send("MULTI")
	cl.reply()
	for range count {
		cl.send("COMMAND DOCS")
		cl.want("+QUEUED")
	}
	cl.send("CLIENT SETNAME me", "EXEC", "CLIENT GETNAME")
	cl.want("+QUEUED")
	if reply := cl.reply(); len(reply) > 3*maxLocal/2 ||
		!strings.HasSuffix(reply, strings.TrimSpace(string(errRepliesLarge))) {
		t.Errorf("EXEC of %d COMMAND DOCS answers %d bytes that end with %q",
			count, len(reply), reply[max(0, len(reply)-100):])
	}
	cl.want("$2 me")
}

func TestTransactionOfSeveralSlots(t *testing.T) {
	const crossSlot = "-CROSSSLOT Keys in request don't hash to the same slot"
	strict, lenient := newCluster(t, 2), newCluster(t, 2, relaxed)
	a, b := key(0, 2), key(1, 2)
	for c, mayCross := range map[*rig]bool{strict: false, lenient: true} {
		cl := c.dial()
		cl.send("MULTI", "SET "+a+" 1", "SET "+b+" 2", "EXEC", "GET "+a)
		cl.want("+OK", "+QUEUED", "+QUEUED")
		if mayCross {
			cl.want("*2 +OK +OK", "$1 1")
		} else {
			cl.want(crossSlot, "$-1")
		}
		cl.send("WATCH "+a+" "+b, "WATCH "+a, "WATCH "+b, "MULTI", "GET "+a, "EXEC", "WATCH "+a,
			"MULTI", "GET "+b, "EXEC")
		cl.want(crossSlot, "+OK", "+OK", "+OK", "+QUEUED", crossSlot, "+OK", "+OK", "+QUEUED", crossSlot)
	}

	// Transactions as frameworks send them: many keys at once, each with an expiry, for example.
	cl := lenient.dial()
	var sets, incrs, keys []string
	for i := range 50 {
		sets = append(sets, fmt.Sprintf("k%d %d", i, i))
		keys = append(keys, fmt.Sprintf("k%d", i))
		incrs = append(incrs, fmt.Sprintf("INCR k%d", i))
	}
	all := []string{"MULTI", "MSET " + strings.Join(sets, " "), "PING"}
	all = append(append(all, incrs...), "MGET "+strings.Join(keys, " "), "EXISTS k1 k2 k3 none", "EXEC")
	cl.send(all...)
	cl.want("+OK")
	for range len(all) - 2 {
		cl.want("+QUEUED")
	}
	want := fmt.Sprintf("*%d +OK +PONG", len(all)-2)
	for i := range 50 {
		want += fmt.Sprintf(" :%d", i+1)
	}
	want += " *50"
	for i := range 50 {
		want += fmt.Sprintf(" $%d %d", len(fmt.Sprint(i+1)), i+1)
	}
	cl.want(want + " :3")
}

// A transaction that a node refused is sent again; one whose outcome is unknown is not.
func TestTransactionIsRefused(t *testing.T) {
	for _, f := range []func(*Config){func(*Config) {}, relaxed} {
		c := newCluster(t, 2, f)
		cl := c.dial()
		k := key(0, 2)
		tries := 0
		c.nodes[0].set(func(n *fakeNode) {
			n.refuse = func(string) string {
				if tries++; tries%3 != 0 {
					return "-DUNLINWAIT\r\n"
				}
				return ""
			}
		})
		cl.send("WATCH "+k, "MULTI", "INCR "+k, "EXEC", "INCR "+k)
		cl.want("+OK", "+OK", "+QUEUED", "*1 :1", ":2")

		c.nodes[0].set(func(n *fakeNode) {
			n.refuse = nil
			n.answer = func(args []string) (string, bool) { return "", args[0] == "DUNLIN" }
		})
		cl.send("MULTI", "INCR "+k, "EXEC")
		cl.want("+OK", "+QUEUED", "-ERR the connection to the node broke after the command was sent, outcome unknown")
	}
}

// A node that answers a part wrongly spoils only that transaction.
func TestTransactionWithBadReplies(t *testing.T) {
	c := newCluster(t, 2, relaxed)
	cl := c.dial()
	a, b := key(0, 2), key(1, 2)
	const unmergeable = "-ERR a node gave a reply that cannot be merged with the others"
	for reply, want := range map[string]string{
		"*1\r\n:1\r\n": "", "*2\r\n:1\r\n:2\r\n": unmergeable, "*0\r\n": unmergeable, "*-1\r\n": unmergeable, ":1\r\n": unmergeable,
		"-ERR no\r\n": "-ERR no",
	} {
		c.nodes[0].set(func(n *fakeNode) {
			n.answer = func(args []string) (string, bool) { return reply, args[0] == "DUNLIN" }
		})
		if want == "" {
			want = "*2 :1 +OK"
		}
		cl.send("MULTI", "INCR "+a, "SET "+b+" x", "EXEC", "GET "+b)
		cl.want("+OK", "+QUEUED", "+QUEUED", want, "$1 x")
	}
	c.nodes[0].set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) { return "*1\r\n:1\r\n", args[0] == "DUNLIN" }
	})
	cl.send("WATCH " + a)
	cl.want(unmergeable)

	// A transaction behind a WATCH that failed is not executed unwatched.
	c.nodes[0].set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) { return "-ERR no\r\n", args[0] == "DUNLIN" && args[1] == "WATCH" }
	})
	cl.send("DISCARD", "UNWATCH", "WATCH "+a, "MULTI", "SET "+a+" never", "EXEC", "MULTI", "SET "+a+" 5", "EXEC")
	cl.want("-ERR DISCARD without MULTI", "+OK", "-ERR no", "+OK", "+QUEUED", "*-1", "+OK", "+QUEUED", "*1 +OK")
}

// Queued commands count as their client's memory, and are freed with the client.
func TestQueueIsCounted(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	cl := c.dial()
	cl.send("MULTI", "SET k "+hugeValue(3<<20))
	cl.want("+OK", "+QUEUED")
	if kept := c.stats().Buffers; kept < 3<<20 {
		t.Errorf("%d bytes are counted", kept)
	}
	cl.send("EXEC", "GET k")
	cl.want("*1 +OK", text(hugeValue(3<<20)))
	c.wantNothingKept()
	cl.send("MULTI", "SET k "+hugeValue(3<<20))
	cl.want("+OK", "+QUEUED")
	cl.Close()
	c.wantNothingKept()
}

// A transaction that waits for its turn does not close its session with what it has gathered itself:
// it was executed.
func TestGatheredTransactionWaitsForItsTurn(t *testing.T) {
	c := newCluster(t, 2, relaxed, oneLoop(t))
	slow, a, b := key(0, 2), key(1, 2), key(1, 2)+"x"
	for i := 0; ring.Partition(ring.Slot([]byte(b)))%2 != 1 || ring.Slot([]byte(a)) == ring.Slot([]byte(b)); i++ {
		b = a + strconv.Itoa(i)
	}
	value := strings.Repeat("v", 1000)
	cl := c.dial()
	cl.send("SET "+a+" "+value, "SET "+b+" "+value)
	cl.want("+OK", "+OK")
	gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
	for i, gate := range gates {
		c.nodes[i].set(func(n *fakeNode) { n.gate = gate })
	}
	cl.send("GET "+slow, "MULTI", "GET "+a, "GET "+b, "EXEC")
	eventually(t, "all is sent", func() bool { return c.stats().Inflight == 3 })
	const others = maxEarly - 1500 // a part fits besides, but not two
	charge := func(n int) {
		done := make(chan struct{})
		c.proxy.workers[0].loop.Post(func() {
			defer close(done)
			for _, s := range c.proxy.workers[0].clients {
				s.gather(n)
			}
		})
		<-done
	}
	charge(others)
	close(gates[1])
	eventually(t, "the transaction is executed", func() bool { return c.stats().Inflight <= 1 })
	charge(-others)
	close(gates[0])
	cl.want("$-1", "+OK", "+QUEUED", "+QUEUED", "*2 $1000 "+value+" $1000 "+value)
}
