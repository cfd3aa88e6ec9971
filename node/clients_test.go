package node

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestClientInfoCounts: requests and bytes of the connection, whoever executes the requests.
func TestClientInfoCounts(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	in, out := 0, 0
	lines := []string{"SET k v", "GET k", "PING", "MGET k l", "KEYS *", "NOSUCH", "APPEND k more"}
	for _, line := range lines {
		raw := resp.AppendRequest(nil, words(t, line)...)
		c.sendRaw(raw)
		in, out = in+len(raw), out+len(c.read())
	}
	info := resp.AppendRequest(nil, []byte("CLIENT"), []byte("INFO"))
	c.sendRaw(info)
	want := fmt.Sprintf("tot-net-in=%d tot-net-out=%d tot-cmds=%d\\x0a", in+len(info), out, len(lines))
	if got := c.next(); !strings.Contains(got, want) {
		t.Errorf("CLIENT INFO says %s, want %s", got, want)
	}
}

// Replies that are sent from values where they lie, or made by goroutines, are dropped like others
// when they are not wanted.
func TestLargeRepliesThatAreNotWanted(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(17<<20, 1)
	c.wantBig("SET {k} BIG", v, "OK")
	c.want("SET {k}b x", "OK")
	c.sendRaw([]byte("CLIENT REPLY SKIP\r\nGET {k}\r\nGET {k}b\r\n")) // pinned
	if got := c.next(); got != `"x"` {
		t.Fatalf("behind a large value: %.100s", got)
	}
	c.sendRaw([]byte("CLIENT REPLY SKIP\r\nBITCOUNT {k}\r\nSTRLEN {k}\r\n" + // a goroutine answers
		"CLIENT REPLY SKIP\r\nAPPEND {k} x\r\nSTRLEN {k}\r\n" + // a goroutine makes the value, and the command runs again
		"CLIENT REPLY OFF\r\nBITCOUNT {k}\r\nAPPEND {k} x\r\nGET {k}\r\nCLIENT REPLY ON\r\nSTRLEN {k}\r\n"))
	for _, want := range []string{"(integer) 17825792", "(integer) 17825793", "OK", "(integer) 17825794"} {
		if got := c.next(); got != want {
			t.Fatalf("got %.100s, want %s", got, want)
		}
	}
	c.want("CLIENT REPLY ON", "OK")
	c.sendRaw([]byte("CLIENT REPLY SKIP\r\n"))
	c.sendRaw(bigRequest(t, "SET {k} BIG", v[:1<<20])) // which is gathered
	c.want("STRLEN {k}", "(integer) 1048576")
}

// manyIdle connects clients that say nothing but their long name.
func manyIdle(t *testing.T, n *Node, clients int) {
	t.Helper()
	name := strings.Repeat("n", 1000)
	for range clients {
		c := dial(t, n.Addr())
		c.send("CLIENT SETNAME " + name)
	}
	asks := dial(t, n.Addr())
	deadline := time.Now().Add(replyTimeout)
	for strings.Count(asks.do("CLIENT LIST"), " name="+name) < clients {
		if time.Now().After(deadline) {
			t.Fatal("not all clients have their name")
		}
	}
}

// posted is how many functions the loops have executed.
func posted(n *Node) (all uint64) {
	each := make([]uint64, len(n.workers))
	_ = n.cfg.Group.Each(func(l *netloop.Loop) { each[l.Index()] = l.Stats().Posted })
	for _, p := range each {
		all += p
	}
	return all
}

// CLIENT LIST of many clients takes many turns of the loops, and not one. It is made in memory that is charged before
// it is there, and without that it fails, but nothing else does.
func TestClientListOfMany(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 64 << 20 })
	const clients = 1500
	manyIdle(t, n, clients)
	c := dial(t, n.Addr())
	before := posted(n)
	list := c.do("CLIENT LIST")
	if took := posted(n) - before; took < clients/32 {
		t.Errorf("the loops take %d turns for %d clients", took, clients)
	}
	if got := strings.Count(list, " laddr="); got != clients+2 {
		t.Errorf("%d clients are listed, want %d", got, clients+2)
	}
	used := n.conns.Load()
	free := int64(0)
	for step := int64(1 << 20); step >= 32<<10; {
		if n.Charge(step) {
			free += step
		} else {
			step /= 2
		}
	}
	n.Refund(1 << 20)
	free -= 1 << 20
	if got := c.do("CLIENT LIST"); got != "(error) "+exec.ErrOOM {
		t.Errorf("without memory for it, the list is %.100s", got)
	}
	c.want("PING", "PONG")
	n.Refund(free)
	if got := strings.Count(c.do("CLIENT LIST"), " laddr="); got != clients+2 {
		t.Errorf("with memory again, %d clients are listed, want %d", got, clients+2)
	}
	c.want("PING", "PONG")
	if now := n.conns.Load(); now > used+1<<20 {
		t.Errorf("behind the lists, connections have %d bytes, and had %d", now, used)
	}
}

// Many CLIENT LISTs are made one after the other. Those whose clients disconnect are not made.
func TestManyClientLists(t *testing.T) {
	n := startNode(t)
	manyIdle(t, n, 300)
	ready := make(chan bool)
	begun := session.NewEveryone(session.ActionPause, n.session.NewState("", "", 0), words(t, "CLIENT UNPAUSE"), len(n.workers))
	n.session.Visits().Enter(begun, func() { close(ready) })
	<-ready // another command has its turn
	var waiting []*client
	for range 40 {
		c := dial(t, n.Addr())
		c.send("CLIENT LIST")
		waiting = append(waiting, c)
	}
	eventually(t, "they wait", func() bool { return n.visiting(t) == 40 })
	for _, c := range waiting[:20] {
		_ = c.conn.(*net.TCPConn).SetLinger(0) // a client that merely sends no more may still read
		c.conn.Close()
	}
	eventually(t, "those who have gone do not wait", func() bool { return n.visiting(t) == 20 })
	dial(t, n.Addr()).want("CLIENT UNBLOCK 1", "(integer) 0") // which does not wait
	n.session.Visits().Leave(begun)
	for _, c := range waiting[20:] {
		if got := strings.Count(string(c.read()), " laddr="); got < 300 {
			t.Errorf("%d clients are listed", got)
		}
	}
}

// Clients that ask for lists and do not read them leave memory to others.
func TestUnreadClientLists(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 64 << 20 })
	manyIdle(t, n, 500)
	for range 100 { // of 700 KB each, of which the system takes some
		c := dial(t, n.Addr())
		c.sendRaw([]byte(strings.Repeat("CLIENT LIST\r\n", 20)))
	}
	c := dial(t, n.Addr())
	eventually(t, "there is no room for more lists", func() bool { return c.do("CLIENT LIST") == "(error) "+exec.ErrOOM })
	c.wantBig("SET {k} BIG", bigValue(1<<20, 1), "OK")
	if free := n.engine.MaxBytes() / connShare / 4; !n.Charge(free) {
		t.Errorf("beside unread lists, connections do not get %d bytes", free)
	} else {
		n.Refund(free)
	}
}

// visiting is how many connections have commands that visit all clients.
func (n *Node) visiting(t *testing.T) (all int) {
	t.Helper()
	each := make([]int, len(n.workers))
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for cn := range n.workers[l.Index()].conns {
			if cn.visit != nil && !cn.closed {
				each[l.Index()]++
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return sum(each)
}
