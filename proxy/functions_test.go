package proxy

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestFunctionChangesComeFirst: what follows a change of functions in a pipeline is sent when it is answered, and the
// change when what is ahead of it is.
func TestFunctionChangesComeFirst(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	c.level = ring.FunctionsLevel
	c.route(func(int) int { return 0 })
	n := c.nodes[0]
	n.set(func(n *fakeNode) {
		n.later = func(args []string) bool { return args[0] == "FUNCTION" || args[0] == "EVAL" }
		n.answer = func(args []string) (string, bool) { return ":1\r\n", args[0] == "FCALL" }
	})
	cl, other := c.dial(), c.dial()
	cl.send("EVAL x 1 a", "FUNCTION LOAD x", "FCALL f 1 a", "FCALL f 0", "FUNCTION DELETE x", "GET a")
	sees := func(want int, what string) {
		t.Helper()
		n.waiting(1)
		other.send("GET b") // behind all that was sent
		other.want("$-1")
		if got := strings.Count(strings.Join(n.executed(), " "), what); got != want {
			t.Errorf("the node has got %d of %s, want %d", got, what, want)
		}
	}
	sees(0, "FUNCTION")
	n.complete(0, "$-1\r\n")
	cl.want("$-1")
	sees(0, "FCALL")
	n.complete(0, "$1\r\nx\r\n")
	cl.want("$1 x", ":1", ":1")
	sees(0, "GET a")
	n.complete(0, "+OK\r\n")
	cl.want("+OK", "$-1")
}

// TestFunctionsBelowTheirLevel: a cluster that knows scripts may know no functions yet.
func TestFunctionsBelowTheirLevel(t *testing.T) {
	c := newCluster(t, 1)
	c.level = ring.FunctionsLevel - 1
	c.route(func(int) int { return 0 })
	c.retry()
	cl := c.dial()
	refused := strings.TrimSpace(string(errFunctions))
	cl.send("FCALL f 0", "FUNCTION LOAD x", "FUNCTION LIST", "FUNCTION STATS", "FUNCTION KILL", "MULTI", "FCALL f 0", "EXEC")
	cl.want(refused, refused, refused, refused, refused, "+OK", refused)
	if got := cl.reply(); !strings.HasPrefix(got, "-EXECABORT") {
		t.Errorf("EXEC answers %q", got)
	}
}
