package proxy

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/ring"
)

// withOther has the proxy know of another one.
func (c *rig) withOther() {
	members := []ring.Member{{ID: "p1", Boot: 7, Role: ring.RoleProxy}, {ID: "p2", Boot: 8, Role: ring.RoleProxy}}
	for _, n := range c.nodes {
		members = append(members, n.member())
	}
	c.proxy.SetMembers(members)
}

// moveTime gives clients time to move.
func moveTime(d time.Duration) func(*Config) { return func(cfg *Config) { cfg.MoveTime = d } }

// drain drains the proxy in the background. wait waits for the end of that.
func (c *rig) drain() (wait func()) {
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	go func() { done <- c.proxy.Drain(ctx) }()
	return func() {
		c.t.Helper()
		select {
		case err := <-done:
			if err != nil {
				c.t.Fatal(err)
			}
		case <-time.After(20 * time.Second):
			c.t.Fatal("the proxy still drains")
		}
	}
}

// awaitMoving waits until the proxy has sessions move.
func (c *rig) awaitMoving() {
	c.t.Helper()
	eventually(c.t, "the proxy has sessions move", func() bool {
		var loops atomic.Int64
		c.each(func(l *netloop.Loop) {
			if c.proxy.workers[l.Index()].moving != nil {
				loops.Add(1)
			}
		})
		return loops.Load() == int64(len(c.proxy.workers))
	})
}

// moves makes a connection that moves when it is told to.
func (c *rig) moves() *conn {
	c.t.Helper()
	cl := c.dial()
	cl.send("HELLO 3", "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none")
	cl.reply()
	cl.want("+OK")
	return cl
}

// wantMoving expects the push that has a client move within so many seconds at most.
func (c *conn) wantMoving(seconds int) {
	c.t.Helper()
	var number, left int
	got := c.reply()
	if n, err := fmt.Sscanf(got, ">4 $6 MOVING :%d :%d _", &number, &left); n != 2 || err != nil ||
		number < 1_700_000_000_000 || left > seconds || left < seconds*9/10 {
		c.t.Fatalf("got %q, want a push MOVING, %d seconds", got, seconds)
	}
}

// TestDrainHasClientsMove: who has asked for it is told that the proxy stops, once and while it reads. Everybody is
// served until these have gone.
func TestDrainHasClientsMove(t *testing.T) {
	c := newCluster(t, 1, moveTime(time.Hour))
	c.nodes[0].set(func(n *fakeNode) {
		n.later = func(args []string) bool { return args[0] == "BLPOP" }
		n.listen = func([]string) member.Heard { return member.Noted }
	})
	c.level = ring.Level
	c.route(func(int) int { return 0 })
	c.withOther()
	idle, waits, subscribes, old, undecided := c.moves(), c.moves(), c.moves(), c.dial(), c.moves()
	forgets := c.dial() // its topics
	forgets.send("CLIENT SETINFO LIB-NAME node-redis", "HELLO 3", "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none")
	forgets.want("+OK")
	forgets.reply()
	forgets.send("SUBSCRIBE ch")
	forgets.want("+OK", ">3 $9 subscribe $2 ch :1")
	old.send("PING")
	old.want("+PONG")
	undecided.send("CLIENT MAINT_NOTIFICATIONS OFF")
	undecided.want("+OK")
	waits.send("BLPOP k 0")
	c.nodes[0].waiting(1)
	subscribes.send("SUBSCRIBE ch")
	subscribes.want(">3 $9 subscribe $2 ch :1")

	wait := c.drain()
	c.awaitMoving()
	waits.wantMoving(3600)
	subscribes.wantMoving(3600)
	idle.send("SET k v", "GET k")
	idle.wantMoving(3600)
	idle.want("+OK", "$1 v")
	idle.send("GET k")
	idle.want("$1 v")
	fresh := c.moves()
	fresh.send("GET k", "GET k")
	fresh.wantMoving(3600)
	fresh.want("$1 v", "$1 v")
	c.nodes[0].complete(0, "*2\r\n$1\r\nk\r\n$1\r\ne\r\n")
	waits.want("*2 $1 k $1 e")
	subscribes.send("PING")
	subscribes.want("+PONG")
	forgets.send("PING")
	forgets.want("+PONG")
	for _, cl := range []*conn{old, undecided, c.dial()} {
		cl.send("GET k")
		cl.want("$1 v")
	}
	for _, cl := range []*conn{waits, subscribes, fresh} {
		cl.Close()
	}
	idle.send("RESET") // it has changed its mind
	idle.want("+RESET")
	for _, cl := range []*conn{idle, old, undecided, forgets} {
		cl.wantClosed()
	}
	wait()
}

// TestManySubscribersMove: all sessions that only read are told, in however many turns.
func TestManySubscribersMove(t *testing.T) {
	c := trackingCluster(t, func(string, string) {}, moveTime(time.Hour))
	c.withOther()
	var subscribers []*conn
	for range moveAtOnce + 10 {
		cl := c.dial()
		cl.send("HELLO 3", "CLIENT MAINT_NOTIFICATIONS ON", "SUBSCRIBE ch")
		subscribers = append(subscribers, cl)
	}
	for _, cl := range subscribers {
		cl.reply()
		cl.want("+OK", ">3 $9 subscribe $2 ch :1")
	}
	wait := c.drain()
	for _, cl := range subscribers {
		cl.wantMoving(3600)
		cl.Close()
	}
	wait()
}

// TestMoveTimeEnds: who does not go is closed when its time is over, with what it has sent answered. A connection on
// which nothing is read gets no push, which would hide from its library that it is closed.
func TestMoveTimeEnds(t *testing.T) {
	c := newCluster(t, 1, moveTime(10*time.Millisecond), oneLoop(t))
	c.withOther()
	idle, busy := c.moves(), c.moves()
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	busy.send("SET k v")
	eventually(t, "the command is on its way", func() (sent bool) {
		c.onLoop(func(w *worker) {
			sent = slices.ContainsFunc(w.clients, func(s *client) bool { return s.head < s.tail })
		})
		return sent
	})
	wait := c.drain()
	busy.wantMoving(0)
	idle.wantClosed()
	close(gate)
	busy.want("+OK")
	busy.wantClosed()
	wait()
}

// TestLateComersAreNotTold: a client that comes back to the proxy that it was told to leave is not told again and
// again until the end.
func TestLateComersAreNotTold(t *testing.T) {
	c := newCluster(t, 1, moveTime(leastMove-time.Millisecond))
	c.withOther()
	stays := c.moves()
	wait := c.drain()
	c.awaitMoving()
	stays.send("PING")
	stays.wantMoving(2)
	stays.want("+PONG")
	comes := c.moves()
	comes.send("PING")
	comes.want("+PONG")
	stays.Close()
	comes.wantClosed()
	wait()
}

// TestLastProxyTellsNobody: without another proxy there is nowhere to move.
func TestLastProxyTellsNobody(t *testing.T) {
	c := newCluster(t, 1, moveTime(time.Hour))
	cl := c.moves()
	wait := c.drain()
	cl.wantClosed()
	wait()
}

// TestMovingWaitsForALargeReply: the push does not come in the middle of a reply.
func TestMovingWaitsForALargeReply(t *testing.T) {
	c := newTicketCluster(t, 1, moveTime(time.Hour))
	c.withOther()
	value := hugeValue(9 << 20)
	cl := c.moves()
	cl.send("SET k " + value)
	cl.want("+OK")
	cl.send("GET k", "GET none")
	eventually(t, "the reply is in the output in part", func() (cutting bool) {
		c.onLoop(func(w *worker) { cutting = w.clients[0].isCutting() })
		return cutting
	})
	wait := c.drain()
	c.awaitMoving()
	cl.send("PING") // it may be read while the reply is on its way
	cl.want(text(value))
	var between []string
	for pongs := 0; pongs < 2; {
		got := cl.reply()
		if got == "+PONG" {
			if pongs++; pongs == 1 {
				cl.send("PING")
			}
			continue
		}
		between = append(between, got[:min(len(got), len(">4 $6 MOVING"))])
	}
	slices.Sort(between)
	if want := []string{"$-1", ">4 $6 MOVING"}; !slices.Equal(between, want) {
		t.Errorf("behind the large reply came %q, want %q", between, want)
	}
	cl.Close()
	wait()
}
