package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// blockingCluster is a proxy with one worker over a node at which blocking commands wait.
func blockingCluster(t *testing.T, change ...func(*Config)) (*rig, *fakeNode) {
	return blockingClusterOf(t, ring.Level, change...)
}

// blockingClusterOf is blockingCluster of a level.
func blockingClusterOf(t *testing.T, level uint8, change ...func(*Config)) (*rig, *fakeNode) {
	c := newCluster(t, 1, append(change, oneLoop(t))...)
	c.nodes[0].set(func(n *fakeNode) {
		n.later = func(args []string) bool {
			row := command.Lookup([]byte(args[0]))
			return row != nil && row.Flags&command.Blocking != 0
		}
		n.answer = func([]string) (string, bool) { return ":1\r\n", true }
	})
	c.level = level
	c.route(func(int) int { return 0 })
	return c, c.nodes[0]
}

// received has the commands that the node is sent, as lines.
type received struct {
	mu    sync.Mutex
	lines []string
}

func (r *received) add(args []string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.Join(args, " "))
	return ":1\r\n", true
}

func (r *received) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

func (r *received) has(line string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.lines, line)
}

func (r *received) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

// leave has a client leave whose command waits, and waits until the proxy has noticed.
func (c *rig) leave(cl *conn) {
	c.t.Helper()
	cl.Close()
	eventually(c.t, "the client is forgotten", func() bool { return c.stats().Clients == 0 })
}

// TestReturns: what was popped for a client that has gone goes back where it came from.
func TestReturns(t *testing.T) {
	const pair = "*2\r\n$1\r\nk\r\n$1\r\ne\r\n"
	for line, want := range map[string]struct{ reply, sent string }{
		"BLPOP k 0":                       {pair, "LPUSH k e"},
		"BRPOP k 0":                       {pair, "RPUSH k e"},
		"BLMPOP 0 1 k LEFT COUNT 3":       {"*2\r\n$1\r\nk\r\n*3\r\n$1\r\na\r\n$2\r\nbc\r\n$0\r\n\r\n", "LPUSH k  bc a"},
		"BLMPOP 0 2 k {k}2 right":         {"*2\r\n$1\r\nk\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", "RPUSH k b a"},
		"BZPOPMIN k 0":                    {"*3\r\n$1\r\nk\r\n$1\r\nm\r\n$3\r\n2.5\r\n", "ZADD k NX 2.5 m"},
		"BZPOPMAX k 0":                    {"*3\r\n$1\r\nk\r\n$1\r\nm\r\n,inf\r\n", "ZADD k NX inf m"},
		"BZMPOP 0 1 k MIN COUNT 2":        {"*2\r\n$1\r\nk\r\n*2\r\n*2\r\n$1\r\nm\r\n,1\r\n*2\r\n$1\r\nn\r\n,2\r\n", "ZADD k NX 1 m 2 n"},
		"BLMOVE k {k}2 LEFT LEFT 0":       {"$1\r\ne\r\n", ""},
		"BLPOP k 1":                       {"*-1\r\n", ""},
		"BLPOP k 2":                       {"_\r\n", ""},
		"BLPOP k 3":                       {"-ERR canceled: the client has disconnected\r\n", ""},
		"BLPOP " + strings.Repeat("k", 9): {fmt.Sprintf("*2\r\n$9\r\n%s\r\n$70000\r\n%s\r\n", strings.Repeat("k", 9), strings.Repeat("e", 70000)), "LPUSH " + strings.Repeat("k", 9) + " " + strings.Repeat("e", 70000)},
	} {
		if strings.HasSuffix(line, "k") {
			line += " 0"
		}
		t.Run(line, func(t *testing.T) {
			c, n := blockingCluster(t)
			var got received
			n.set(func(n *fakeNode) { n.answer = got.add })
			cl := c.dial()
			cl.send(line)
			n.waiting(1)
			c.leave(cl)
			n.complete(0, want.reply)
			if want.sent != "" {
				eventually(t, "the element is returned", func() bool { return got.has(want.sent) })
			}
			again := c.dial()
			again.send("PING", "LLEN k") // over the same pipe
			again.want("+PONG", ":1")
			if n := got.count() - 1; n != min(1, len(want.sent)) {
				t.Errorf("the node is sent %d commands: %.200q", n, got.all())
			}
		})
	}
}

// TestReturnsFollow: a return is parked like any other command, and sent once.
func TestReturnsFollow(t *testing.T) {
	c, n := blockingCluster(t)
	var got received
	refused := 0
	n.set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) {
			if args[0] == "LPUSH" && refused < 3 {
				refused++
				return "-DUNLINWAIT 1\r\n", true
			}
			return got.add(args)
		}
	})
	cl := c.dial()
	cl.send("BLPOP k 0")
	n.waiting(1)
	c.leave(cl)
	n.complete(0, "*2\r\n$1\r\nk\r\n$1\r\ne\r\n")
	eventually(t, "the element is returned", func() bool { return got.has("LPUSH k e") })
	if got.count() != 1 {
		t.Errorf("the node executes %q", got.all())
	}
	if s := c.stats(); s.Returns != 1 || s.ReturnsLost != 0 {
		t.Errorf("%d returns, %d lost", s.Returns, s.ReturnsLost)
	}
}

// TestReturnsOfABrokenPipe: nobody knows whether a return was executed whose pipe broke, so it is not sent
// again: the element must not be there twice.
func TestReturnsOfABrokenPipe(t *testing.T) {
	c, n := blockingCluster(t)
	var got received
	n.set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) {
			got.add(args)
			return "", args[0] == "LPUSH" // closes the connection
		}
	})
	cl := c.dial()
	cl.send("BLPOP k 0")
	n.waiting(1)
	c.leave(cl)
	n.complete(0, "*2\r\n$1\r\nk\r\n$1\r\ne\r\n")
	eventually(t, "the return has failed", func() bool { return c.stats().ReturnsLost == 1 })
	if lines := got.all(); !slices.Equal(lines, []string{"LPUSH k e"}) {
		t.Errorf("the node executes %q", lines)
	}

	n.set(func(n *fakeNode) {
		n.ahead = string(member.AppendPopped(nil, 7))
		n.answer = func(args []string) (string, bool) {
			got.add(args)
			return "", args[0] != "DUNLIN"
		}
	})
	cl = c.dial()
	cl.send("BLPOP k 0")
	n.waiting(1)
	c.leave(cl)
	n.complete(0, "*2\r\n$1\r\nk\r\n$1\r\ne\r\n")
	eventually(t, "the return by a token has failed", func() bool { return c.stats().ReturnsLost == 2 })
	if lines := got.all(); !slices.Equal(lines, []string{"LPUSH k e", "DUNLIN RETURN 7 LPUSH k e"}) {
		t.Errorf("the node executes %q", lines)
	}
}

// TestReturnsByTokens: what a node has given a token for is returned by it, if the cluster has the level.
func TestReturnsByTokens(t *testing.T) {
	many := strings.Repeat("$1\r\ne\r\n", member.MaxReturned-1)
	for _, x := range [...]struct {
		level             uint8
		line, reply, sent string
		atOnce            bool
	}{
		{ring.ReturnLevel, "BLPOP k 0", "*2\r\n$1\r\nk\r\n$1\r\ne\r\n", "DUNLIN RETURN 7 LPUSH k e", false},
		{ring.ReturnLevel, "BLPOP k 0", "*2\r\n$1\r\nk\r\n$1\r\ne\r\n", "DUNLIN RETURN 7 LPUSH k e", true},
		{ring.ReturnLevel - 1, "BLPOP k 0", "*2\r\n$1\r\nk\r\n$1\r\ne\r\n", "LPUSH k e", false},
		{ring.ReturnLevel, "BZPOPMIN k 0", "*3\r\n$1\r\nk\r\n$1\r\nm\r\n$1\r\n2\r\n", "DUNLIN RETURN 7 ZADD k NX 2 m", false},
		{ring.ReturnLevel, "BLMPOP 0 1 k LEFT COUNT 999", fmt.Sprintf("*2\r\n$1\r\nk\r\n*%d\r\n%s", member.MaxReturned-1, many),
			"LPUSH k" + strings.Repeat(" e", member.MaxReturned-1), false},
	} {
		t.Run(fmt.Sprint(x.level, x.line, x.atOnce), func(t *testing.T) {
			c, n := blockingClusterOf(t, x.level)
			var got received
			ahead, goOn := string(member.AppendPopped(nil, 7)), make(chan struct{})
			n.set(func(n *fakeNode) {
				n.ahead = ahead
				n.answer = got.add
				if x.atOnce {
					n.later = func([]string) bool { return false }
					n.answer = func(args []string) (string, bool) {
						got.add(args)
						if args[0] != "BLPOP" {
							return ":1\r\n", true
						}
						<-goOn
						return ahead + x.reply, true
					}
				}
			})
			cl := c.dial()
			cl.send(x.line)
			if x.atOnce {
				eventually(t, "the node executes it", func() bool { return got.count() == 1 })
				c.leave(cl)
				close(goOn)
			} else {
				n.waiting(1)
				c.leave(cl)
				n.complete(0, x.reply)
			}
			eventually(t, "the element is returned", func() bool { return got.has(x.sent) })
		})
	}
}

// TestReturnsWithoutAToken: the token of a reply is not taken for that of a later one.
func TestReturnsWithoutAToken(t *testing.T) {
	c, n := blockingCluster(t)
	var got received
	n.set(func(n *fakeNode) { n.answer, n.ahead = got.add, string(member.AppendPopped(nil, 7)) })
	stays, leaves := c.dial(), c.dial()
	stays.send("BLPOP k 0")
	n.waiting(1)
	leaves.send("BLPOP k 0")
	eventually(t, "both wait", func() bool { return c.stats().Blocked == 2 })
	leaves.Close()
	eventually(t, "the client is forgotten", func() bool { return c.stats().Clients == 1 })
	const reply = "*2\r\n$1\r\nk\r\n$1\r\ne\r\n"
	n.complete(0, reply)
	stays.want("*2 $1 k $1 e")
	n.set(func(n *fakeNode) { n.ahead = "" })
	n.complete(0, reply)
	eventually(t, "the element is returned", func() bool { return got.has("LPUSH k e") })
}

// TestReturnsOfLongReplies: a reply that comes by a ticket is not returned, and that is counted.
func TestReturnsOfLongReplies(t *testing.T) {
	c, n := blockingCluster(t)
	cl := c.dial()
	cl.send("BLPOP k 0")
	n.waiting(1)
	c.leave(cl)
	n.complete(0, "-DUNLINLARGE 9 300000\r\n")
	eventually(t, "the loss is counted", func() bool { return c.stats().ReturnsLost == 1 })
}
