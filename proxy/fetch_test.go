package proxy

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// newTicketCluster has nodes that answer with tickets.
func newTicketCluster(t *testing.T, nodes int, change ...func(*Config)) *rig {
	t.Helper()
	c := newCluster(t, nodes, append(change, oneLoop(t))...)
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.tickets = map[string]string{} })
	}
	return c
}

// wantNoTickets waits until the nodes keep no more replies.
func (c *rig) wantNoTickets() {
	c.t.Helper()
	eventually(c.t, "the end of all tickets", func() (none bool) {
		none = true
		for _, n := range c.nodes {
			n.set(func(n *fakeNode) { none = none && len(n.tickets) == 0 })
		}
		return none
	})
	c.wantNothingKept()
}

func text(value string) string { return fmt.Sprintf("$%d %s", len(value), value) }

// Large replies are fetched in their turn, and the replies before and after them stay in order.
func TestLargeReplies(t *testing.T) {
	c := newTicketCluster(t, 2)
	cl := c.dial()
	a, b := key(0, 2), key(1, 2)
	for _, size := range []int{ticketFrom, fetchPiece - 20, fetchPiece, 3 * fetchPiece, 10*fetchPiece + 5} {
		value := hugeValue(size)
		cl.send("SET "+a+" "+value, "SET "+b+" "+value[1:], "SET "+a+":s x")
		cl.want("+OK", "+OK", "+OK")
		cl.send("GET "+a, "GET "+b, "GET "+a+":s", "GET "+b, "SET "+a+" y", "GET "+a, "MGET "+a+" "+b, "MGET "+b+" "+b)
		cl.want(text(value), text(value[1:]), "$1 x", text(value[1:]), "+OK", "$1 y",
			"*2 $1 y "+text(value[1:]), "*2 "+text(value[1:])+" "+text(value[1:]))
	}
	if n := c.stats().LargeReplies; n < 15 {
		t.Errorf("%d replies were fetched", n)
	}
	c.wantNoTickets()
}

// A slow client has two pieces in the proxy, and the pipe over which they came is free for other
// clients.
func TestLargeReplyWaitsForItsReader(t *testing.T) {
	c := newTicketCluster(t, 1)
	value := hugeValue(9 << 20)
	slow, other := c.dial(), c.dial()
	slow.send("SET k " + value)
	slow.want("+OK")
	slow.send("GET k", "GET k", "SET k small", "GET k")
	other.send("GET none")
	other.want("$-1")
	eventually(t, "everything was executed", func() bool { return len(c.nodes[0].executed()) == 6 })
	other.send("SET k "+value[:3<<20], "GET k")
	other.want("+OK", text(value[:3<<20]))
	most := int64(0)
	for range 50 {
		most = max(most, c.stats().Buffers)
	}
	if most > 1<<20 {
		t.Errorf("%d bytes wait for a client that does not read", most)
	}
	slow.want(text(value), text(value), "+OK", "$5 small")
	c.wantNoTickets()
}

// Large parts of split commands wait for their turn, and until the client has received the replies
// before. A client that sends many such commands has the replies to one of them in the proxy, not
// to all.
func TestLargePartsWaitForTheirTurn(t *testing.T) {
	c := newTicketCluster(t, 2)
	a, b := key(0, 2), key(1, 2)
	value := hugeValue(2 << 20)
	asked := make([]map[string]bool, len(c.nodes)) // tickets, by node
	for i, n := range c.nodes {
		asked[i] = map[string]bool{}
		n.set(func(n *fakeNode) {
			n.data = map[string]string{a: value, b: value}
			n.fetch = func(args []string) (string, bool) {
				asked[i][args[2]] = true
				return "", false
			}
		})
	}
	cl := c.dial()
	const commands = 3
	for range commands {
		cl.send("MGET " + a + " " + b)
	}
	eventually(t, "both parts of the first reply", func() bool {
		parts := 0
		for i, n := range c.nodes {
			n.set(func(*fakeNode) { parts += min(1, len(asked[i])) })
		}
		return parts == len(c.nodes) && c.stats().Buffers > int64(len(value))
	})
	for range 50 {
		if waiting := c.stats().Buffers; waiting > int64(4*len(value)) {
			t.Fatalf("%d bytes wait for a client that does not read", waiting)
		}
	}
	for i, n := range c.nodes {
		n.set(func(*fakeNode) {
			if len(asked[i]) != 1 {
				t.Errorf("node %d was asked for %d large replies, before the first was read", i, len(asked[i]))
			}
		})
	}
	for range commands {
		cl.want("*2 " + text(value) + " " + text(value))
	}
	c.wantNoTickets()
}

// A client that goes away leaves no ticket behind, in whatever state its replies are.
func TestLargeRepliesOfGoneClients(t *testing.T) {
	c := newTicketCluster(t, 2)
	a, b := key(0, 2), key(1, 2)
	value := hugeValue(3 << 20)
	cl := c.dial()
	cl.send("SET "+a+" "+value, "SET "+b+" "+value)
	cl.want("+OK", "+OK")
	for i := range 20 {
		gone := c.dial()
		gone.send("GET "+a, "GET "+b, "MGET "+a+" "+b, "GET "+a)
		if _, err := io.CopyN(io.Discard, gone.r, int64(i)*400_000); err != nil {
			t.Fatal(err)
		}
		gone.Close()
	}
	c.wantNoTickets()
	cl.send("GET " + a)
	cl.want(text(value))
	c.wantNoTickets()
}

// The proxy requests pieces again when their pipe breaks.
func TestLargeReplyOverABrokenPipe(t *testing.T) {
	c := newTicketCluster(t, 1)
	value := hugeValue(2 << 20)
	cl := c.dial()
	cl.send("SET k " + value)
	cl.want("+OK")
	asked := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.fetch = func(args []string) (string, bool) {
			asked++
			return "", args[4] != "0" && asked%5 == 3 // the connection closes
		}
	})
	cl.send("GET k", "GET k")
	cl.want(text(value), text(value))
	if broken := c.stats().PipesBroken; broken < 4 {
		t.Errorf("%d pipes broke", broken)
	}
	c.wantNoTickets()
}

// If a reply cannot be fetched, the client gets an error, or the connection ends if a part has been
// sent.
func TestLostLargeReply(t *testing.T) {
	const lost = "-ERR the command was executed, but its large reply was lost on the way from the node; a command that only reads may be repeated"
	for what, fail := range map[string]string{"no ticket": "-ERR there is no such ticket\r\n",
		"short": bulk("xy"), "no bulk": ":1\r\n", "long": bulk(strings.Repeat("x", 2*fetchPiece))} {
		c := newTicketCluster(t, 2)
		a, b := key(0, 2), key(1, 2)
		cl := c.dial()
		value := hugeValue(3 << 20)
		cl.send("SET "+a+" "+value, "SET "+b+" "+value)
		cl.want("+OK", "+OK")
		set := func(from int) {
			c.nodes[0].set(func(n *fakeNode) {
				n.fetch = func(args []string) (string, bool) {
					var offset int
					fmt.Sscan(args[3], &offset)
					return fail, args[4] != "0" && offset >= from
				}
			})
		}
		set(0)
		cl.send("GET "+a, "GET "+b, "MGET "+a+" "+b)
		cl.want(lost, text(value), lost)
		if n := c.stats().LostReplies; n != 2 {
			t.Errorf("%s: %d replies are lost, want 2", what, n)
		}
		set(1 << 20)
		cl.send("GET "+a, "GET "+b)
		got, err := io.ReadAll(cl.r)
		if !strings.HasPrefix(text(value), strings.Replace(string(got), "\r\n", " ", 1)) ||
			len(got) > 1<<20 || err != nil {
			t.Errorf("%s: %d bytes before the connection closed, %v", what, len(got), err)
		}
		c.wantNoTickets()
	}
}

// A node that is gone takes its replies with it.
func TestLargeReplyOfADeadNode(t *testing.T) {
	c := newTicketCluster(t, 1, func(cfg *Config) { cfg.Patience = 300 * time.Millisecond })
	cl := c.dial()
	cl.send("SET k " + hugeValue(1<<20))
	cl.want("+OK")
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) {
		n.fetch = func([]string) (string, bool) { <-gate; return "", true }
	})
	cl.send("GET k")
	eventually(t, "a ticket", func() bool { return c.stats().LargeReplies == 1 })
	c.proxy.SetMembers(nil)
	close(gate)
	if got := cl.reply(); !strings.HasPrefix(got, "-ERR the command was executed, but its large reply was lost") {
		t.Errorf("got %.100q", got)
	}
	c.wantNothingKept()
}

// A large reply to a command of several partitions of one node is also dropped if nobody wants it.
func TestLargeReplyOfOneNodeThatIsNotWanted(t *testing.T) {
	c := newTicketCluster(t, 1)
	cl := c.dial()
	value := hugeValue(2 * fetchPiece)
	cl.send("MSET k0 "+value+" k1 "+value, "CLIENT REPLY SKIP", "MGET k0 k1", "PING",
		"CLIENT REPLY OFF", "MGET k0 k1", "GET k0",
		"CLIENT REPLY ON", "MGET k1 k0", "PING")
	cl.want("+OK", "+PONG", "+OK", "*2 "+text(value)+" "+text(value), "+PONG")
	c.wantNoTickets()
}

// A large reply that nobody wants is not fetched, and those around it stay in order.
func TestLargeReplyThatIsNotWanted(t *testing.T) {
	c := newTicketCluster(t, 2)
	var fetched atomic.Int32
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.fetch = func(args []string) (string, bool) {
				if args[4] != "0" {
					fetched.Add(1)
				}
				return "", false
			}
		})
	}
	cl := c.dial()
	a, b := key(0, 2), key(1, 2)
	value := hugeValue(2 * fetchPiece)
	cl.send("MSET "+a+" "+value+" "+b+" "+value, "CLIENT REPLY SKIP", "GET "+a, "GET "+b,
		"CLIENT REPLY SKIP", "MGET "+a+" "+b,
		"CLIENT REPLY OFF", "GET "+b, "GET "+a, "CLIENT REPLY ON", "GET "+a, "PING")
	cl.want("+OK", text(value), "+OK", text(value), "+PONG")
	c.wantNoTickets()
	if n := c.stats().LargeReplies; n < 6 {
		t.Errorf("%d large replies", n)
	}
	if n, want := int(fetched.Load()), 2*(1+len(text(value))/fetchPiece); n > want {
		t.Errorf("%d pieces were fetched, want those of the two replies that are wanted, %d", n, want)
	}
}
