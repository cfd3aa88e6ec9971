package proxy

import (
	"strings"
	"testing"
	"time"
)

// laterCluster is a proxy with one worker over nodes that answer INCR later.
func laterCluster(t *testing.T, nodes int, change ...func(*Config)) *rig {
	c := newCluster(t, nodes, append(change, oneLoop(t))...)
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.later = func(args []string) bool { return args[0] == "INCR" } })
	}
	return c
}

// What a node answers later delays nobody, and its reply comes in its turn.
func TestAnsweredLater(t *testing.T) {
	c := laterCluster(t, 1)
	n, cl, other := c.nodes[0], c.dial(), c.dial()
	cl.send("INCR a", "GET b", "SET b x", "INCR c")
	n.waiting(2)
	other.send("SET d y", "GET d") // the same pipe
	other.want("+OK", "$1 y")
	n.complete(1, "")
	n.complete(0, "")
	cl.want(":1", "$-1", "+OK", ":1")
	cl.send("GET a", "GET b")
	cl.want("$1 1", "$1 x")

	cl.send("INCR a", "INCR e", "GET d")
	n.waiting(2)
	n.complete(0, "-ERR no\r\n")
	n.complete(0, "*2\r\n:1\r\n$1\r\nz\r\n")
	cl.want("-ERR no", "*2 :1 $1 z", "$1 y")
}

// The completion of a command is its refusal, or a ticket.
func TestCompletedByWhatStandsForAReply(t *testing.T) {
	c := laterCluster(t, 1)
	n, cl := c.nodes[0], c.dial()
	long := strings.Repeat("v", 2*ticketFrom)
	cl.send("SET k 1", "INCR k", "GET other")
	n.waiting(1)
	n.complete(0, "-DUNLINWAIT 1\r\n")
	n.waiting(1) // it is sent again
	cl.send("GET k")
	n.complete(0, "")
	cl.want("+OK", ":2", "$-1", "$1 2")

	n.set(func(n *fakeNode) { n.tickets = map[string]string{"9": bulk(long)} })
	cl.send("INCR k", "GET other")
	n.waiting(1)
	n.complete(0, "-DUNLINLARGE 9 2009\r\n")
	cl.want("$2000 "+long, "$-1")
}

// What cannot be placed closes the pipe: a token that is not known, or a push that is none.
func TestPushesOutOfStep(t *testing.T) {
	for _, push := range []string{">3\r\n+later\r\n:9\r\n+OK\r\n", ">1\r\n+other\r\n", ">3\r\n+later\r\n:1\r\n-DUNLINLATER 2\r\n", ">3\r\n+later\r\n:9\r\n-DUNLINWAIT 1\r\n"} {
		c := laterCluster(t, 1)
		n, cl := c.nodes[0], c.dial()
		cl.send("INCR a")
		n.waiting(1)
		n.mu.Lock()
		n.pending[0].c.Write([]byte(push))
		n.mu.Unlock()
		if got := cl.reply(); !strings.HasPrefix(got, "-ERR") {
			t.Errorf("behind %q INCR is answered %q, want an error", push, got)
		}
		cl.send("GET b") // over another connection
		cl.want("$-1")
	}
}

// The pipe breaks while commands are to be answered later: what may be executed twice is sent again,
// and of the rest nobody knows.
func TestPipeBreaksBeforeTheAnswer(t *testing.T) {
	c := laterCluster(t, 1)
	n, reads, writes := c.nodes[0], c.dial(), c.dial()
	n.set(func(n *fakeNode) { n.later = func(args []string) bool { return args[1] == "slow" } })
	reads.send("GET slow", "GET fast")
	writes.send("INCR slow")
	n.waiting(2)
	n.set(func(n *fakeNode) { n.later = func([]string) bool { return false } })
	n.cut()
	reads.want("$-1", "$-1")
	if got := writes.reply(); !strings.HasPrefix(got, "-ERR") || !strings.Contains(got, "unknown") {
		t.Errorf("INCR is answered %q", got)
	}
}

// A node that has died with what it was to answer later is given up as soon as any other.
func TestSilentWithDeferredCommands(t *testing.T) {
	c := laterCluster(t, 1, func(cfg *Config) { cfg.Silence = 250 * time.Millisecond })
	n, cl := c.nodes[0], c.dial()
	asked := make(chan bool, 1000)
	n.set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) {
			if args[0] == "PING" {
				asked <- true
			}
			return "", false
		}
	})
	cl.send("INCR a")
	n.waiting(1)
	for range 3 { // it lives, and answers the proxy's questions
		came(t, "a question", asked)
	}
	n.complete(0, "")
	cl.want(":1")
	cl.send("INCR a")
	n.waiting(1)
	gate := make(chan struct{})
	defer close(gate)
	n.set(func(n *fakeNode) { n.gate = gate }) // it answers nothing any more
	start := time.Now()
	if got := cl.reply(); !strings.HasPrefix(got, "-ERR") {
		t.Errorf("got %q", got)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("given up after %v", took)
	}
}
