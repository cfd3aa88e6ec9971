package node

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// popped reads the push in front of a reply.
func (c *client) popped() (token uint64) {
	c.t.Helper()
	push := c.read()
	token, ok := member.ParsePopped(push)
	if !ok {
		c.t.Fatalf("got %.200q in front of what was popped", push)
	}
	return token
}

// completion reads the push that completes a command, and checks the reply.
func (c *client) completion(token uint64, want string) {
	c.t.Helper()
	push := c.read()
	if got, reply, ok := member.ParsePush(push); !ok || got != token || conversation.Text(reply) != want {
		c.t.Errorf("got %.200q, want the reply %s to %d", push, want, token)
	}
}

// TestReturn: what was popped for a client that has gone comes back, unless its key was deleted since.
func TestReturn(t *testing.T) {
	const lost = "(empty array)"
	for _, x := range [...]struct{ between, want string }{
		{"", `1) "e"`},
		{"DEL p", `1) "e"`},
		{"RPUSH q x", "1) \"e\"\n2) \"x\""},
		{"RPUSH q x;LPOP q;LTRIM q 0 9", `1) "e"`},
		{"RPUSH q x;LREM q 0 x", `1) "e"`},
		{"DEL q", lost},
		{"UNLINK q", lost},
		{"FLUSHALL", lost},
		{"FLUSHDB", lost},
		{"RPUSH q x;DEL q;RPUSH q y", `1) "y"`},
		{"RPUSH q x;FLUSHALL;RPUSH q y;LPOP q", lost},
		{"RPUSH q x;LTRIM q 1 0", lost},
		{"SET q x;DEL q", lost},
		{"RPUSH {q}r x;RENAME {q}r q", `1) "x"`},
		{"RPUSH {q}r x;COPY {q}r q", `1) "x"`},
		{"RPUSH {q}r x;SORT {q}r ALPHA STORE q", `1) "x"`},
		{"RPUSH q x;RENAME q {q}r", lost},
		{"RPUSH q x;PEXPIRE q 0", lost},
		{"MULTI;RPUSH q x;DEL q;EXEC", lost},
	} {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprint(x.between, held), func(t *testing.T) {
				n := startLeveled(t)
				p, c := claimPipe(t, n), dial(t, n.Addr())
				if held { // the element is there already
					c.do("RPUSH q e")
				}
				p.send("BLPOP q 0")
				if !held {
					p.wantRaw(later(1))
					c.want("RPUSH q e", "(integer) 1")
				}
				token := p.popped()
				if held {
					p.wantNext(poppedFrom("q", "e"))
				} else {
					p.completion(1, poppedFrom("q", "e"))
				}
				for line := range strings.SplitSeq(x.between, ";") {
					if line != "" {
						c.do(line)
					}
				}
				p.do(fmt.Sprintf("DUNLIN RETURN %d LPUSH q e", token))
				c.want("LRANGE q 0 -1", x.want)
				p.want("PING", "PONG")
			})
		}
	}
}

// TestReturnOfSortedSets is TestReturn for members, and another database.
func TestReturnOfSortedSets(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	for i, line := range []string{"BZPOPMIN {z} 0", "BZPOPMAX {z} 0", "BZMPOP 0 1 {z} MIN COUNT 2"} {
		for _, between := range []string{"", "ZREM {z} n", "ZUNIONSTORE {z} 1 {z}none", "ZRANGESTORE {z} {z}r 0 -1", "FLUSHDB", "SELECT 0;FLUSHDB"} {
			t.Run(line+between, func(t *testing.T) {
				c.do("FLUSHALL")
				c.do("SELECT 3")
				c.do("ZADD {z}r 7 r")
				c.do("ZADD {z} 1 m")
				c.do("EXPIRE {z} 100")
				p.sendRaw(p.of(3, line))
				token := p.popped()
				p.read()
				for other := range strings.SplitSeq(between, ";") {
					if other != "" {
						c.do(other)
					}
				}
				p.sendRaw(p.of(3, fmt.Sprintf("DUNLIN RETURN %d ZADD {z} NX 1 m", token)))
				p.read()
				c.do("SELECT 3")
				switch i, kept := i, between == "" || strings.HasPrefix(between, "ZREM") || strings.HasPrefix(between, "SELECT"); {
				case kept:
					c.want("ZRANGE {z} 0 -1 WITHSCORES", "1) \"m\"\n2) \"1\"")
					c.wantTTL("{z}", 100)
				default:
					if got := c.do("ZSCORE {z} m"); got != "(nil)" {
						t.Errorf("%d: a member comes back with the score %s", i, got)
					}
				}
			})
		}
	}
}

// TestReturnRestoresTheExpiry: a key that was emptied comes back with its expiry, and one that was
// made anew has its own.
func TestReturnRestoresTheExpiry(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	p.send("BLPOP q 0")
	p.wantRaw(later(1))
	for _, line := range []string{"MULTI", "RPUSH q e", "EXPIRE q 100", "EXEC"} {
		c.do(line)
	}
	token := p.popped()
	p.completion(1, poppedFrom("q", "e"))
	c.want("EXISTS q", "(integer) 0")
	p.want(fmt.Sprintf("DUNLIN RETURN %d LPUSH q e", token), "(integer) 1")
	c.wantTTL("q", 100)

	p.send("BLPOP q 0")
	token = p.popped()
	p.wantNext(poppedFrom("q", "e"))
	c.do("RPUSH q x")
	p.want(fmt.Sprintf("DUNLIN RETURN %d LPUSH q e", token), "(integer) 2")
	c.want("TTL q", "(integer) -1")
}

// TestReturnServes: what comes back serves those that wait, first come, first served.
func TestReturnServes(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	c.do("RPUSH q e f")
	p.send("BLMPOP 0 1 q LEFT COUNT 2")
	token := p.popped()
	p.read()
	first, second := block(t, n, "BLPOP q 0"), block(t, n, "BLPOP q 0")
	p.want(fmt.Sprintf("DUNLIN RETURN %d LPUSH q f e", token), "(integer) 2")
	first.wantNext(poppedFrom("q", "e"))
	second.wantNext(poppedFrom("q", "f"))
	c.want("EXISTS q", "(integer) 0")
}

// TestReturnOfMany: one run pops many elements, and they are returned in several pieces under one lock. What takes
// several runs has no token.
func TestReturnOfMany(t *testing.T) {
	const many = member.MaxReturned - 50
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	var all []string
	for i := range many {
		all = append(all, fmt.Sprint(i))
	}
	c.do("RPUSH q " + strings.Join(all, " "))
	p.send("PING")
	p.send("BLMPOP 0 1 q LEFT COUNT 1000")
	p.wantNext("PONG")
	token := p.popped()
	if reply := p.read(); !strings.HasPrefix(string(reply), fmt.Sprintf("*2\r\n$1\r\nq\r\n*%d\r\n", many)) {
		t.Errorf("got %.80q", reply)
	}
	slices.Reverse(all)
	p.want(fmt.Sprintf("DUNLIN RETURN %d LPUSH q %s", token, strings.Join(all, " ")), fmt.Sprintf("(integer) %d", many))
	for i := range many {
		if got := c.do("LPOP q"); got != fmt.Sprintf("%q", fmt.Sprint(i)) {
			t.Fatalf("element %d is %s", i, got)
		}
	}
	long := bytes.Repeat([]byte("x"), 100_000)
	back := member.AppendReturn(nil, token, [][]byte{[]byte("LPUSH"), []byte("q"), long, long})
	p.sendRaw(back)
	p.wantNext("(integer) 2")
	c.want("DEL q", "(integer) 1")
	p.sendRaw(back)
	p.wantNext("(integer) 0")

	c.do("RPUSH q " + strings.Join(all, " ") + " " + strings.Join(all, " "))
	p.send("BLMPOP 0 1 q LEFT COUNT 1000")
	p.wantRaw(later(1))
	if push := p.read(); !strings.HasPrefix(string(push), ">3\r\n+later\r\n:1\r\n*2\r\n") {
		t.Errorf("got %.80q", push)
	}
}

// TestPoppedLong: the token of a long element that is popped at once is no part of the reply, for
// which a ticket stands.
func TestPoppedLong(t *testing.T) {
	const long = 300_000
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	c.sendArgs([]byte("RPUSH"), []byte("q"), bytes.Repeat([]byte("x"), long))
	c.wantNext("(integer) 1")
	p.send("BLPOP q 0")
	p.popped()
	reply := p.read()
	ticket, size, ok := member.ParseTicket(reply)
	if head := "*2\r\n$1\r\nq\r\n$300000\r\n"; !ok || size != len(head)+long+2 {
		t.Errorf("got %.80q, want a ticket for %d bytes", reply, len(head)+long+2)
	}
	p.send(fmt.Sprintf("DUNLIN FETCH %d 0 4", ticket))
	p.wantRaw("$4\r\n*2\r\n\r\n")
}

// TestReturnWithoutKnowing: a token that the node does not know stops nothing, and a key of another type stays.
func TestReturnWithoutKnowing(t *testing.T) {
	n := startLeveled(t)
	p, c := claimPipe(t, n), dial(t, n.Addr())
	p.want("DUNLIN RETURN 7 RPUSH q e", "(integer) 1")
	p.want("DUNLIN RETURN 7 ZADD q NX 1 e", "(error) WRONGTYPE Operation against a key holding the wrong kind of value")
	p.want("DUNLIN RETURN 7 ZADD z NX 1 e", "(integer) 1")
	for _, line := range []string{"DUNLIN RETURN x RPUSH q e", "DUNLIN RETURN 7 SET q e", "DUNLIN RETURN 7 ZADD z NX",
		"DUNLIN RETURN 7 LPUSH q" + strings.Repeat(" e", member.MaxReturned)} {
		if got := p.do(line); !strings.HasPrefix(got, "(error) ERR") {
			t.Errorf("%.40s answers %s", line, got)
		}
	}
	c.want("DUNLIN RETURN 7 RPUSH q e", "(error) "+errBadReturn)
	c.want("LRANGE q 0 -1", `1) "e"`)
}

// TestPoppedOfALevel: a proxy that does not know tokens gets none, until it says that it does.
func TestPoppedOfALevel(t *testing.T) {
	n := startLeveled(t)
	table := altered(n.view.Load().Table, func(next *ring.Table) { next.Level = ring.ReturnLevel - 1 })
	n = startBare(t)
	table.Nodes[0] = memberOf(n)
	n.SetTable(table)
	p, c := dial(t, n.Addr()), dial(t, n.Addr())
	p.want(fmt.Sprintf("%s %d", pipeLine(7, 0, "common", 1, 2), ring.ReturnLevel-1), "OK later")
	c.do("RPUSH q 1 2")
	p.want("BLPOP q 0", poppedFrom("q", "1"))
	p.want(fmt.Sprintf("DUNLIN LEVEL %d", ring.ReturnLevel), "OK later")
	p.send("BLPOP q 0")
	p.popped()
	p.wantNext(poppedFrom("q", "2"))
}
