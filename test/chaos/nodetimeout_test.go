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
	incr := func(l *harness.Link, key string) {
		if err := l.Send([]byte("INCR " + key + "\r\n")); err != nil {
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
		incr(l, timeout)
		if got := receive(l); got != ":1\r\n" {
			t.Fatalf("INCR answers %q", got)
		}
		links = append(links, l)
	}
	c.Node(0).Stop()
	incr(links[1], "5s")
	incr(links[0], "250ms")
	if got, want := receive(links[0]), "-ERR the connection to the node broke after the command was sent"; !strings.HasPrefix(got, want) {
		t.Errorf("--node-timeout 250ms: INCR at a node that stands still answers %q, want %q", got, want)
	}
	c.Node(0).Cont()
	if got := receive(links[1]); got != ":2\r\n" {
		t.Errorf("--node-timeout 5s: INCR at a node that stands still answers %q, want :2", got)
	}
}
