package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestNodeTimeout checks that a proxy waits for a node that stands still as long as --node-timeout
// says, and no longer.
func TestNodeTimeout(t *testing.T) {
	t.Parallel()
	f := func(timeout, want string) {
		t.Helper()
		c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 1, Proxies: 1, Env: []string{"DUNLIN_NODE_TIMEOUT=" + timeout}})
		l, err := harness.DialLink(c.Proxy(0).Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Conn.Close()
		reply := func(line string, meanwhile func()) string {
			if err = l.Send([]byte(line + "\r\n")); err != nil {
				t.Fatal(err)
			}
			meanwhile()
			got, err := l.Receive(time.Now().Add(harness.AnswerTime))
			if err != nil {
				t.Fatal(err)
			}
			return string(got)
		}
		if got := reply("INCR a", func() {}); got != ":1\r\n" {
			t.Fatalf("INCR a answers %q", got)
		}
		c.Node(0).Stop()
		got := reply("INCR a", func() {
			time.Sleep(900 * time.Millisecond) // less than the longer timeout, more than the shorter one
			c.Node(0).Cont()
		})
		if !strings.HasPrefix(got, want) {
			t.Errorf("--node-timeout %s: INCR at a node that stands still answers %q, want %q", timeout, got, want)
		}
	}
	f("5s", ":2")
	f("250ms", "-ERR the connection to the node broke after the command was sent")
}
