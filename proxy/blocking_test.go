package proxy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/session"
)

// TestUnblockedWithoutMemory: who cannot wait since there is no memory for it reads that. A fault that there
// was is that it read that it had disconnected.
func TestUnblockedWithoutMemory(t *testing.T) {
	for _, woken := range []string{"", "*-1\r\n"} {
		s := &client{blocking: true, waits: 3, state: new(session.State)}
		want := string(outOfMemory)
		if woken != "" {
			s.woken, want = []byte(woken), woken
		}
		if got := string(s.unblocked(3, canceled)); got != want {
			t.Errorf("the client reads %q, not %q", got, want)
		}
	}
}

// TestWaitsWithoutANode: a command that no node takes waits for its own time, not for the patience of the proxy. It
// counts as one that waits: CLIENT UNBLOCK and the end of its client end it at once.
func TestWaitsWithoutANode(t *testing.T) {
	const patience = 50 * time.Millisecond
	c, n := blockingCluster(t, func(cfg *Config) { cfg.Patience = patience })
	refuses, admin := true, c.dial()
	n.set(func(n *fakeNode) {
		n.later = func(args []string) bool { return args[0] == "BLPOP" && !refuses }
		n.answer = func(args []string) (string, bool) { return "-DUNLINWAIT 1\r\n", args[0] == "BLPOP" }
	})
	blocks := func(line string) (cl *conn, id string) {
		t.Helper()
		cl = c.dial()
		cl.send("CLIENT ID", line)
		id = strings.TrimPrefix(cl.reply(), ":")
		eventually(t, "it waits", func() bool { return c.stats().Blocked == 1 })
		return cl, id
	}
	begun := time.Now()
	cl, _ := blocks("BLPOP k 2")
	cl.want("*-1")
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("its time was up after %v", took)
	}
	for how, want := range map[string]string{"": "*-1", " ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK"} {
		cl, id := blocks("BLPOP k 0")
		admin.send("CLIENT UNBLOCK " + id + how)
		admin.want(":1")
		cl.want(want)
	}
	cl, _ = blocks("BLPOP k 0")
	cl.Close()
	eventually(t, "the client is forgotten", func() bool { return c.stats().Blocked == 0 })

	cl, _ = blocks("BLPOP k 100")
	begun = time.Now()
	eventually(t, "it outlives the patience", func() bool { return time.Since(begun) > 4*patience })
	n.set(func(*fakeNode) { refuses = false })
	n.waiting(1)
	n.mu.Lock()
	if got := n.pending[0].args; len(got) != 3 || !strings.HasPrefix(got[2], "9") {
		t.Errorf("it is sent as %q in the end", got)
	}
	n.mu.Unlock()
	n.complete(0, "*2\r\n$1\r\nk\r\n$1\r\ne\r\n")
	cl.want("*2 $1 k $1 e")
}

// TestUnblockIsExact: CLIENT UNBLOCK answers 1 if it has ended the wait, and 0 if the node has served the
// command or its time was up. The node says which it was.
func TestUnblockIsExact(t *testing.T) {
	c, n := blockingCluster(t)
	admin := c.dial()
	const pair = "*2\r\n$1\r\nk\r\n$1\r\ne\r\n"
	for _, f := range []struct{ how, reply, want, answer string }{
		{"", pair, "*2 $1 k $1 e", ":0"},
		{" ERROR", pair, "*2 $1 k $1 e", ":0"},
		{" ERROR", "*-1\r\n", "*-1", ":0"},
		{"", string(canceled), "*-1", ":1"},
		{" ERROR", string(canceled), "-UNBLOCKED client unblocked via CLIENT UNBLOCK", ":1"},
		{"", "-DUNLINWAIT 1\r\n", "*-1", ":1"}, // no node has it any more
	} {
		cl := c.dial()
		cl.send("CLIENT ID", "BLPOP k 0")
		id := strings.TrimPrefix(cl.reply(), ":")
		n.waiting(1)
		eventually(t, "it waits", func() bool { return c.stats().Blocked == 1 })
		admin.send("CLIENT UNBLOCK "+id+f.how, "PING")
		eventually(t, "the node is told", func() bool {
			return slices.ContainsFunc(n.executed(), func(line string) bool { return strings.HasPrefix(line, "CANCEL ") })
		})
		n.complete(0, f.reply)
		cl.want(f.want)
		admin.want(f.answer, "+PONG")
		n.set(func(n *fakeNode) { n.log = nil })
	}
	cl := c.dial()
	cl.send("CLIENT ID", "BLPOP k 0")
	id := strings.TrimPrefix(cl.reply(), ":")
	n.waiting(1)
	eventually(t, "it waits", func() bool { return c.stats().Blocked == 1 })
	admin.send("CLIENT UNBLOCK " + id)
	eventually(t, "the node is told", func() bool { return len(n.executed()) > 0 })
	cl.Close() // and the node says nothing
	admin.want(":1")
}
