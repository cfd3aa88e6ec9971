package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestNodeTimeout checks that a proxy waits for a node that stands still as long as --node-timeout
// says: one gives it up, and then another still waits.
func TestNodeTimeout(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 1, 2)
	var links []*harness.Link
	receive := func(l *harness.Link) string {
		got, err := l.Receive(time.Now().Add(harness.AnswerTime))
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	send := func(l *harness.Link, line string) {
		if err := l.Send([]byte(line + "\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	for i, timeout := range []string{"250ms", "5s"} {
		p := c.Proxy(i)
		p.Term(harness.ReadyTimeout)
		p.Flags = append(p.Flags, "--node-timeout", timeout)
		p.Start()
		l, err := harness.DialLink(p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Conn.Close()
		got := ""
		harness.Eventually(t, harness.ReadyTimeout, "the node serves", func() bool { // which may get no processor for 250 ms
			send(l, "EXISTS "+timeout)
			got = receive(l)
			return got == ":0\r\n"
		}, func() string { return got })
		links = append(links, l)
	}
	c.Node(0).Stop()
	send(links[1], "INCR 5s")
	send(links[0], "INCR 250ms")
	if got, want := receive(links[0]), "-ERR the connection to the node broke after the command was sent"; !strings.HasPrefix(got, want) {
		t.Errorf("--node-timeout 250ms: INCR at a node that stands still answers %q, want %q", got, want)
	}
	c.Node(0).Cont()
	if got := receive(links[1]); got != ":1\r\n" {
		t.Errorf("--node-timeout 5s: INCR at a node that stands still answers %q, want :1", got)
	}
}
