package proxy

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

const outcomeUnknown = "-ERR the connection to the node broke after the command was sent, outcome unknown"

// A node that breaks the protocol loses the pipe: the commands on it fail, and no client gets later
// bytes of it.
func TestNodeThatBreaksTheProtocol(t *testing.T) {
	for _, test := range []struct{ name, raw, want string }{
		{"surplus reply", ":1\r\n$6\r\nsecret\r\n", ":1"},
		{"surplus bytes that are no reply", ":1\r\nx", ":1"},
		{"no reply", "hello\r\n", outcomeUnknown},
		{"wrong length", "$3\r\nabcdef\r\n", outcomeUnknown},
		{"nested too deep", strings.Repeat("*1\r\n", 100) + ":1\r\n", outcomeUnknown},
		{"bulk beyond the limit", "$536870913\r\nsecret", outcomeUnknown},
		{"bulk of 2^63", "$9223372036854775808\r\n", outcomeUnknown},
		{"array of 2^31", "*2147483648\r\n", outcomeUnknown},
		{"endless line", "+" + strings.Repeat("x", 1<<20), outcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Silence = time.Minute })
			c.nodes[0].set(func(n *fakeNode) {
				n.answer = func(args []string) (string, bool) { return test.raw, args[0] == "INCR" && args[1] == "bad" }
			})
			victim, other := c.dial(), c.dial()
			other.send("SET k v")
			other.want("+OK")
			victim.send("INCR bad")
			victim.want(test.want)
			eventually(t, "the pipe broke", func() bool { return c.stats().PipesBroken == 1 })
			other.send("GET k", "GET none")
			other.want("$1 v", "$-1")
			victim.send("GET k")
			victim.want("$1 v")
		})
	}
}

// No client gets a reply that ends in the middle.
func TestTruncatedReply(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Silence = 250 * time.Millisecond })
	c.nodes[0].set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) { return "$10\r\nhalf", args[0] == "INCR" && args[1] == "bad" }
	})
	cl := c.dial()
	cl.send("INCR bad")
	cl.want(outcomeUnknown)
	cl.send("SET k v", "GET k")
	cl.want("+OK", "$1 v")
}

// If the reply to a part of a split command has a wrong type, that command fails, and no other one.
func TestPartOfTheWrongType(t *testing.T) {
	for _, test := range []struct{ name, raw string }{
		{"MGET", "+OK\r\n"}, {"MGET", ":1\r\n"}, {"MGET", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"}, {"MGET", "*0\r\n"},
		{"DEL", "$1\r\n1\r\n"}, {"DEL", "*1\r\n:1\r\n"}, {"EXISTS", "+1\r\n"},
	} {
		c := newCluster(t, 2)
		a, b := key(0, 2), key(1, 2)
		c.nodes[0].set(func(n *fakeNode) {
			n.answer = func(args []string) (string, bool) { return test.raw, strings.EqualFold(args[0], test.name) }
		})
		cl := c.dial()
		cl.send(test.name+" "+a+" "+b, "SET "+b+" v", "GET "+b)
		if got := cl.reply(); !strings.HasPrefix(got, "-ERR") {
			t.Errorf("%s with a part %q: got %q, want an error", test.name, test.raw, got)
		}
		cl.want("+OK", "$1 v")
	}
}

// Sessions that end while nodes have their commands leave nothing behind, and other sessions do not
// get their replies.
func TestSessionsClosedWithCommandsInFlight(t *testing.T) {
	const sessions, each = 20, 900
	c := newCluster(t, 2, func(cfg *Config) { cfg.Silence = time.Minute })
	keeper := c.dial()
	keeper.send("SET "+key(0, 2)+" v", "SET "+key(1, 2)+" v")
	keeper.want("+OK", "+OK")
	var all []*conn
	warm := slices.Repeat([]string{"GET " + key(0, 2), "GET " + key(1, 2)}, 50) // much is sent only once replies are known to be small
	for range sessions {
		cl := c.dial()
		cl.send(warm...)
		for range warm {
			cl.want("$1 v")
		}
		all = append(all, cl)
	}
	goroutines := runtime.NumGoroutine()
	gate := make(chan struct{})
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.gate = gate })
	}
	var lines []string
	for i := range each {
		lines = append(lines, "INCR "+key(i%2, 2)+":counter")
	}
	for _, cl := range all {
		cl.send(lines...)
	}
	eventually(t, "commands are in flight", func() bool { return c.stats().Inflight >= 10_000 })
	for i, cl := range all {
		if i%2 == 0 { // a reset: the others may be clients that only finished sending
			if err := cl.Conn.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
		}
		cl.Close()
	}
	eventually(t, "the sessions that were reset are gone", func() bool { return c.stats().Clients == 1+sessions/2 })
	close(gate)
	eventually(t, "the other sessions are gone", func() bool { return c.stats().Clients == 1 })
	eventually(t, "nothing is in flight", func() bool { return c.stats().Inflight == 0 })
	keeper.send("GET "+key(0, 2), "GET "+key(1, 2))
	keeper.want("$1 v", "$1 v")
	keeper.Close() // an early reply may have left it a buffer
	eventually(t, "buffers are given back", func() bool { s := c.stats(); return s.Buffers == 0 && s.Parking == 0 })
	if broken := c.stats().PipesBroken; broken != 0 {
		t.Errorf("%d pipes broke", broken)
	}
	eventually(t, "no goroutine is left over", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// Replies that are early because another node is slow close the session if they are far larger than
// foreseen. The proxy counts that.
func TestFarTooManyEarlyReplies(t *testing.T) {
	c := newCluster(t, 2)
	slow, fast := key(0, 2), key(1, 2)
	gate := make(chan struct{})
	defer close(gate)
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	c.nodes[1].set(func(n *fakeNode) { n.data[fast] = strings.Repeat("x", 8<<20) })
	cl := c.dial()
	cl.send(append([]string{"GET " + slow}, slices.Repeat([]string{"GET " + fast}, 12)...)...)
	cl.wantClosed()
	eventually(t, "it is counted", func() bool { s := c.stats(); return s.EarlyClosed == 1 && s.Buffers == 0 })
}

// A client that writes a million commands before it reads anything is served in order or closed, in
// bounded memory.
func TestMillionCommandsInOneWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const commands, bound = 1_000_000, 64 << 20
	c := newCluster(t, 1)
	cl := c.dial()
	request := bytes.Repeat(resp.AppendRequest(nil, []byte("INCR"), []byte("k")), commands)
	var written error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, written = cl.Write(request)
	}()
	var most int64
	eventuallyWithin(t, time.Minute, "the write ends", func() bool {
		s := c.stats()
		most = max(most, s.Buffers+s.PipeBuffers)
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	if most > bound {
		t.Errorf("the connection took %d bytes, want at most %d", most, bound)
	}
	count, err := countUp(cl)
	if written == nil && count != commands || written != nil && c.stats().SlowReaders != 1 {
		t.Errorf("%d replies in order, then %v; the write ended with %v; %d slow readers counted",
			count, err, written, c.stats().SlowReaders)
	}
	t.Logf("%d bytes at most; write: %v; %d replies", most, written, count)
}

// countUp reads replies :1 :2 :3 … until one differs, the last one is read, or the connection ends.
func countUp(cl *conn) (n int, err error) {
	if err := cl.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	for n < 1_000_000 {
		line, err := cl.r.ReadString('\n')
		if err == nil && line != fmt.Sprintf(":%d\r\n", n+1) {
			cl.t.Fatalf("reply %d is %q", n+1, line)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// A node that sends a byte from time to time is not silent. Its own commands wait, in their order,
// and no others do.
func TestNodeThatDribbles(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t), func(cfg *Config) { cfg.Silence = 250 * time.Millisecond })
	slow, fast := key(0, 2), key(1, 2)
	victim, other := c.dial(), c.dial()
	victim.send("SET "+slow+" 1", "SET "+fast+" 2")
	victim.want("+OK", "+OK")
	drip := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.drip = drip })
	victim.send("GET "+slow, "GET "+fast, "GET "+slow)
	bytes := len("$1\r\n1\r\n")
	for range 2 * bytes {
		for range 20 {
			other.send("GET " + fast)
			other.want("$1 2")
		}
		select {
		case drip <- struct{}{}:
		case <-time.After(patience):
			t.Fatal("the node does not answer any more")
		}
	}
	victim.want("$1 1", "$1 2", "$1 1")
	if broken := c.stats().PipesBroken; broken > 0 {
		t.Errorf("%d pipes broke", broken)
	}
}

// A surplus reply is not mistaken for the reply to a command that waits to be sent: that command is
// sent over the next pipe.
func TestSurplusReplyBeforeACommandIsSent(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	victim, other := c.dial(), c.dial()
	other.send("SET k v")
	other.want("+OK")
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) {
		n.gate = gate
		n.answer = func(args []string) (string, bool) { return ":1\r\n$6\r\nsecret\r\n", args[0] == "INCR" }
	})
	victim.send("INCR k")
	eventually(t, "a command is on its way", func() bool { return c.stats().Inflight == 1 })
	other.send("GET k") // queued in the pipe until a reply arrives
	eventually(t, "another command waits", func() bool { return c.stats().Inflight == 2 })
	close(gate)
	victim.want(":1")
	other.want("$1 v")
	if broken := c.stats().PipesBroken; broken != 1 {
		t.Errorf("%d pipes broke", broken)
	}
}

// Commands over the whole cluster have bounded arguments, because every node gets a copy of them. A
// client that sends longer ones breaks no pipe.
func TestLongArgumentsOfWideCommands(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	cl.send("SET k v", "KEYS *")
	cl.want("+OK", "*1 $1 k")
	opened := c.stats().PipesOpened
	long := "KEYS " + strings.Repeat("x", 24<<10)
	many := "SCAN 0" + strings.Repeat(" COUNT 1", 500_000-1) // with what stands before it, more than a node accepts
	for _, line := range []string{long, many} {
		cl.send(line, "GET k")
		if got := cl.reply(); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%.10q is answered %.100q", line, got)
		}
		cl.want("$1 v")
	}
	if s := c.stats(); s.PipesBroken != 0 || s.PipesOpened != opened || s.PipeBytesOut > 64<<10 {
		t.Errorf("%d pipes broke, %d were opened, %d bytes were sent", s.PipesBroken, s.PipesOpened-opened, s.PipeBytesOut)
	}
	eventually(t, "the arguments are forgotten", func() bool { return c.stats().Heap == 0 })
}
