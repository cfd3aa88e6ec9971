package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
)

// sendLines sends requests in one piece.
func (c *client) sendLines(lines ...string) {
	c.t.Helper()
	var input []byte
	for _, line := range lines {
		input = resp.AppendRequest(input, words(c.t, line)...)
	}
	c.sendRaw(input)
}

// wantLines sends requests in one piece, each followed by the reply that it should have.
func (c *client) wantLines(linesAndReplies ...string) {
	c.t.Helper()
	var lines, replies []string
	for i := 0; i < len(linesAndReplies); i += 2 {
		lines, replies = append(lines, linesAndReplies[i]), append(replies, linesAndReplies[i+1])
	}
	c.sendLines(lines...)
	for i, want := range replies {
		if got := c.next(); got != want {
			c.t.Errorf("%s in a pipeline answers %s, want %s", lines[i], got, want)
		}
	}
}

// TestPipelineAsOneByOne says the same random commands to two nodes, to one of them as pipelines of
// many at a time.
func TestPipelineAsOneByOne(t *testing.T) {
	single, pipelined := dial(t, startNode(t).Addr()), dial(t, startNode(t).Addr())
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 1))}
	for range 40 {
		lines := make([]string, 1+g.IntN(3*exec.MaxAhead))
		for i := range lines {
			switch lines[i] = g.line(); g.IntN(40) {
			case 0:
				lines[i] = g.pick("PING", "NOSUCH a b", "GET", "DBSIZE", "KEYS *a", "HELLO 3", "HELLO 2", "SELECT 0", "ECHO x")
			case 1:
				lines[i] = "MGET" + strings.Repeat(" "+g.key(), 1+g.IntN(3*exec.MaxAhead))
			}
		}
		pipelined.sendLines(lines...)
		for i, line := range lines {
			want, got := single.do(line), pipelined.next()
			if !strings.HasPrefix(line, "HELLO") && !sameReply(line, got, want) { // HELLO tells the connection's number
				t.Fatalf("seed %d: %s in a pipeline answers\n%s\nwant\n%s\nafter\n%s", seed, line, got, want, strings.Join(lines[:i], "\n"))
			}
		}
	}
}

// TestPipelineChangesItsMind has requests in a pipeline that decide about those behind them.
func TestPipelineChangesItsMind(t *testing.T) {
	n := startNode(t, func(c *Config) { c.RequirePass = session.NewPasswords("secret") })
	const refused = "(error) NOAUTH Authentication required."
	c := dial(t, n.Addr())
	c.wantLines("GET a", refused, "SET a 1", refused, "AUTH secret", "OK", "SET a 2", "OK", "GET a", `"2"`,
		"RESET", "RESET", "GET a", refused, "AUTH secret", "OK", "GET a", `"2"`)
	c.wantLines("GET a", `"2"`, "QUIT", "OK", "SET a 3", "(closed)")
	c = dial(t, n.Addr())
	c.wantLines("AUTH secret", "OK", "GET a", `"2"`)

	c.sendRaw([]byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n4\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n!PING\r\n*1\r\n$4\r\nPING\r\n"))
	for _, want := range []string{"OK", `"4"`, "(error) ERR Protocol error: expected '$', got '!'", "(closed)"} {
		if got := c.next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestLatchInPipeline is TestLatch with the commands in one piece.
func TestLatchInPipeline(t *testing.T) {
	n := startBare(t)
	v := sharedView(n)
	v.Standing[partitionOf("k")] = ownership.Gained
	setView(n, v)
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)
	p.wantLines("SET other 1", "OK", "MGET other k", saysWait, "SET other 2", saysWait, "SET unrelated 1", "OK",
		"DUNLIN RETRY 1", "OK", "GET other", `"1"`)
}

// TestPanicForgetsWhatIsAhead: what is left of a pipeline when a handler panics is not the next
// connection's.
func TestPanicForgetsWhatIsAhead(t *testing.T) {
	plan := &plans[command.StrLen]
	kept := *plan
	t.Cleanup(func() { *plan = kept }) // after the loops have ended
	plan.handler = func(*exec.Request) { panic("as asked") }
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	c.sendLines("SET before 1", "STRLEN k", "SET behind 1")
	for c.read() != nil {
	}
	dial(t, n.Addr()).wantLines("GET behind", "(nil)", "GET before", `"1"`)
}

// TestNoViewsAreKept: between inputs nothing points into one, which is other memory by then.
func TestNoViewsAreKept(t *testing.T) {
	n := startNode(t)
	var input []byte
	for i := range 2 * exec.MaxAhead {
		input = resp.AppendRequest(input, words(t, fmt.Sprintf("MSET a%d 1 b%d 2", i, i))...)
	}
	input = append(input, "*2\r\n$3\r\nGET\r\n$10\r\nincomplete"...)
	onLoop(t, n, func(cn *conn) {
		cn.OnData(cn.Socket, input)
		ahead := &cn.worker.ahead
		for i, arg := range ahead.args[:cap(ahead.args)] {
			if arg != nil {
				t.Errorf("argument %d still is %q", i, arg)
			}
		}
		for i := range cn.worker.Probes {
			if cn.worker.Probes[i].Key != nil {
				t.Errorf("probe %d still has %q", i, cn.worker.Probes[i].Key)
			}
		}
		if out := cn.Socket.Out(); bytes.Count(out, []byte("+OK\r\n")) != 2*exec.MaxAhead {
			t.Errorf("got %q", out)
		}
	})
}
