package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// waitForMoves is how many requests wait for a move at the node's only loop.
func waitForMoves(t *testing.T, n *Node) (count int) {
	t.Helper()
	onItsLoop(t, n, func(w *worker) { count = w.moving.queue.Len() })
	return count
}

// gaining is a view in which the partition of a key is still to be taken over.
func gaining(n *Node, key string) *ownership.View {
	v := sharedView(n)
	v.Standing[partitionOf(key)] = ownership.Gained
	return v
}

// startGaining starts a node with such a view. Its clients are patient.
func startGaining(t *testing.T, key string) *Node {
	t.Helper()
	n := startBare(t, func(c *Config) { c.Group = newGroup(t, 1) })
	n.movingPatience = time.Hour
	tellLoops(t, n)
	setView(n, gaining(n, key))
	return n
}

// gain ends the move.
func gain(n *Node) {
	setView(n, sharedView(n))
	n.movesChanged()
}

// partedTrio is startLeveledTrio with a partition that moves from the first to the second node, whose
// copy is in sync. Once parted, no node reaches another one anew, until it is not parted any more.
func partedTrio(t *testing.T) (nodes [3]*Node, moved *ring.Table, key string, parted *atomic.Bool) {
	t.Helper()
	parted = new(atomic.Bool)
	dialer := func(ctx context.Context, addr string) (net.Conn, error) {
		for parted.Load() {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	nodes, table, key := startLeveledTrio(t, func(c *Config) {
		c.Group, c.Dialer, c.Memory = newGroup(t, 1), dialer, 256<<20
	})
	for _, n := range nodes {
		n.movingPatience = time.Hour
		tellLoops(t, n)
	}
	p := partitionOf(key)
	moves := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moves, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	moved = altered(moves, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })
	return nodes, moved, key, parted
}

// TestClientsWaitForMoves: at no time of a move do both owners answer MOVED, or one of them TRYAGAIN: the
// owner before has requests wait until the next one obeys the table, and that one until it serves.
func TestClientsWaitForMoves(t *testing.T) {
	large, long := bigValue(300_000, 1), bytes.Repeat([]byte("abcdefgh"), 1<<20)
	for _, test := range []struct {
		name   string
		before []string // that no move concerns
		send   func(c *client, k string)
		at     int      // of the replies, the one that is MOVED; -1: none is
		here   []string // the replies of the next owner
	}{
		{"a pipeline", nil, func(c *client, k string) {
			c.sendLines("PING", "SET {"+k+"}a 1", "INCR {"+k+"}a")
		}, 1, []string{"PONG", "OK", "(integer) 2"}},
		{"several keys", nil, func(c *client, k string) {
			c.sendLines("MSET {"+k+"}a 1 {"+k+"}b 2", "MGET {"+k+"}a {"+k+"}b")
		}, 0, []string{"OK", "1) \"1\"\n2) \"2\""}},
		{"a transaction", nil, func(c *client, k string) {
			c.sendLines("MULTI", "INCR {"+k+"}t", "EXEC", "PING")
		}, 2, []string{"OK", "QUEUED", "1) (integer) 1", "PONG"}},
		{"a transaction of many words", nil, func(c *client, k string) {
			c.sendLines("MULTI", "DEL"+strings.Repeat(" {"+k+"}l", 2*planAtOnce), "EXEC", "PING")
		}, 2, []string{"OK", "QUEUED", "1) (integer) 0", "PONG"}},
		{"a transaction of a long word", nil, func(c *client, k string) {
			c.sendLines("MULTI")
			c.sendRaw(bigRequest(t, "SET {"+k+"}h BIG", long))
			c.sendLines("GETRANGE {"+k+"}h 8000000 8000007", "EXEC", "PING")
		}, 3, []string{"OK", "QUEUED", "QUEUED", "1) OK\n2) \"abcdefgh\"", "PONG"}},
		{"a watch", nil, func(c *client, k string) {
			c.sendLines("WATCH {"+k+"}w", "PING")
		}, 0, []string{"OK", "PONG"}},
		{"many keys", nil, func(c *client, k string) {
			c.sendLines("DEL" + strings.Repeat(" {"+k+"}m", 5000))
		}, 0, []string{"(integer) 0"}},
		{"a large value", nil, func(c *client, k string) {
			c.sendRaw(bigRequest(t, "SET {"+k+"}v BIG", large))
			c.sendLines("STRLEN {"+k+"}v", "PING")
		}, 0, []string{"OK", fmt.Sprintf("(integer) %d", len(large)), "PONG"}},
		{"several large values", nil, func(c *client, k string) {
			c.sendRaw(bigRequest(t, "MSET {"+k+"}v BIG {"+k+"}w BIG", large))
			c.sendLines("STRLEN {"+k+"}w", "PING")
		}, 0, []string{"OK", fmt.Sprintf("(integer) %d", len(large)), "PONG"}},
		{"a command that blocks", nil, func(c *client, k string) {
			c.sendLines("BLPOP {"+k+"}q 0.001", "PING")
		}, 0, []string{"(nil)", "PONG"}},
		{"a message", nil, func(c *client, k string) {
			c.sendLines("SPUBLISH {"+k+"}c m", "PING")
		}, 0, []string{"(integer) 0", "PONG"}},
		{"a subscription", nil, func(c *client, k string) {
			c.sendLines("SSUBSCRIBE {" + k + "}c")
		}, 0, []string{"1) \"ssubscribe\"\n2) \"{KEY}c\"\n3) (integer) 1"}},
		{"no reply", []string{"CLIENT REPLY SKIP"}, func(c *client, k string) {
			c.sendLines("SET {"+k+"}s 1", "PING")
		}, -1, []string{"PONG"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			nodes, table, key, parted := partedTrio(t)
			sayMoved := fmt.Sprintf("(error) MOVED %d ", ring.Slot([]byte(key)))
			ask := func(n *Node) *client {
				t.Helper()
				c := dial(t, n.Addr())
				c.sendLines(test.before...)
				test.send(c, key)
				eventually(t, n.cfg.ID+" has the request wait", func() bool { return waitForMoves(t, n) == 1 })
				return c
			}
			parted.Store(true)
			nodes[0].SetTable(table)
			old := ask(nodes[0])
			dial(t, nodes[1].Addr()).want("GET "+key, sayMoved+nodes[0].Addr()) // it does not have the table
			parted.Store(false)
			for i, want := range test.here {
				got := old.next()
				if i == test.at && got != sayMoved+nodes[1].Addr() || i < test.at && got != want {
					t.Errorf("reply %d of the owner before is %s", i, got)
				}
			}
			eventually(t, "the next owner serves", nodes[1].Serving)

			parted.Store(true)
			back := altered(table, func(next *ring.Table) { next.Owner[partitionOf(key)] = 0 })
			nodes[0].SetTable(back)
			next := ask(nodes[0])
			parted.Store(false)
			for i, want := range test.here {
				if got := next.next(); got != strings.ReplaceAll(want, "KEY", key) {
					t.Errorf("reply %d of the next owner is %s, want %s", i, got, want)
				}
			}
			for _, n := range nodes {
				if waiting := waitForMoves(t, n); waiting > 0 {
					t.Errorf("%d requests wait still", waiting)
				}
			}
		})
	}
}

// TestMovesHaveAnEnd: a request that has waited for moves for too long is refused, those behind it at
// once, until the next table. What was kept for it is freed.
func TestMovesHaveAnEnd(t *testing.T) {
	n := startGaining(t, "k")
	onItsLoop(t, n, func(w *worker) { n.movingPatience = 10 * time.Millisecond })
	c := dial(t, n.Addr())
	c.want("GET k", saysTryAgain)
	onItsLoop(t, n, func(w *worker) { n.movingPatience = time.Hour })
	c.sendLines("INCR k", "GET k", "GET j")
	for _, want := range []string{saysTryAgain, saysTryAgain, "(nil)"} {
		if got := c.next(); got != want {
			t.Errorf("behind it, the reply is %s, want %s", got, want)
		}
	}
	c.wantBig("SET k BIG", bigValue(300_000, 1), saysTryAgain)
	if st := n.engine.Stats(); st.Staged != 0 {
		t.Errorf("%d bytes are staged", st.Staged)
	}
	v := gaining(n, "k")
	v.Table.Epoch++
	setView(n, v)
	c.send("INCR k")
	eventually(t, "it waits again", func() bool { return waitForMoves(t, n) == 1 })
	gain(n)
	if got := c.next(); got != "(integer) 1" {
		t.Errorf("INCR answers %s", got)
	}
}

// TestPatienceIsForAllMoves: what a request waits for one move after another counts together.
func TestPatienceIsForAllMoves(t *testing.T) {
	for _, test := range []struct {
		name string
		send func(c *client)
	}{
		{"in the input", func(c *client) { c.send("GET {k}") }},
		{"uploaded", func(c *client) { c.sendRaw(bigRequest(t, "SET {k} BIG", bigValue(300_000, 1))) }},
		{"listed", func(c *client) { c.send("DEL" + strings.Repeat(" {k}", 5000)) }},
		{"planned", func(c *client) {
			c.want("MULTI", "OK")
			c.want("DEL"+strings.Repeat(" {k}", 2*planAtOnce), "QUEUED")
			c.send("EXEC")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startGaining(t, "{k}")
			c := dial(t, n.Addr())
			test.send(c)
			again := func(part time.Duration) { // as if it had waited for so long, and its partition moved anew
				t.Helper()
				eventually(t, "it waits", func() bool { return waitForMoves(t, n) == 1 })
				onItsLoop(t, n, func(w *worker) {
					cn := w.moving.queue.Front().Value.(*conn)
					cn.queued.begun -= part
					cn.leaveQueue()
					cn.takeUp()
				})
			}
			again(n.movingPatience / 2)
			again(n.movingPatience / 2)
			if got := c.next(); got != saysTryAgain {
				t.Errorf("the reply is %s", got)
			}
			c.want("GET {i}", "(nil)")
		})
	}
}

// TestManyWaitForAMove: they go on, and are refused, in turns, and not all in one.
func TestManyWaitForAMove(t *testing.T) {
	const many = 300
	for want, end := range map[string]func(n *Node){
		"(nil)": gain,
		saysTryAgain: func(n *Node) {
			onItsLoop(t, n, func(w *worker) {
				for cn := range w.conns {
					cn.queued.begun -= n.movingPatience
				}
				w.moving.review()
			})
		},
	} {
		n := startGaining(t, "k")
		var clients []*client
		for range many {
			c := dial(t, n.Addr())
			c.send("GET k")
			clients = append(clients, c)
		}
		eventually(t, "all wait", func() bool { return waitForMoves(t, n) == many })
		most, left := 0, many
		onItsLoop(t, n, func(w *worker) {
			w.loop.OnIterationEnd(func() {
				now := w.moving.queue.Len()
				most, left = max(most, left-now), now
			})
		})
		end(n)
		for _, c := range clients {
			if got := c.next(); got != want {
				t.Fatalf("the reply is %s, want %s", got, want)
			}
		}
		onItsLoop(t, n, func(*worker) {
			if most > movingSteps/goOnSteps {
				t.Errorf("of %d requests, %d go on in one turn", many, most)
			}
		})
	}
}

// TestWhoWaitsForAMoveMayLeave: a client that waits for a move may disconnect, be killed, be paused, and
// is listed meanwhile.
func TestWhoWaitsForAMoveMayLeave(t *testing.T) {
	n := startGaining(t, "k")
	other, leaves, killed, paused := dial(t, n.Addr()), dial(t, n.Addr()), dial(t, n.Addr()), dial(t, n.Addr())
	leaves.sendRaw(bigRequest(t, "SET k BIG", bigValue(300_000, 1)))
	id := strings.TrimPrefix(killed.do("CLIENT ID"), "(integer) ")
	for name, c := range map[string]*client{"killed": killed, "paused": paused} {
		c.want("CLIENT SETNAME "+name, "OK")
		c.send("INCR k")
	}
	eventually(t, "all wait", func() bool { return waitForMoves(t, n) == 3 })
	if list := other.do("CLIENT LIST"); !strings.Contains(list, " name=killed ") || !strings.Contains(list, " name=paused ") {
		t.Fatalf("CLIENT LIST has\n%s", list)
	}
	if err := leaves.conn.(*net.TCPConn).SetLinger(0); err != nil { // so that the node notices
		t.Fatal(err)
	}
	leaves.conn.Close()
	eventually(t, "two wait", func() bool { return waitForMoves(t, n) == 2 })
	if st := n.engine.Stats(); st.Staged != 0 {
		t.Errorf("%d bytes are staged", st.Staged)
	}
	other.want("CLIENT KILL ID "+id, "(integer) 1")
	eventually(t, "one waits", func() bool { return waitForMoves(t, n) == 1 })
	other.want("CLIENT PAUSE 60000 WRITE", "OK")
	gain(n)
	eventually(t, "it waits for the end of the pause", func() bool { return n.session.Blocked() == 1 })
	other.want("GET k", "(nil)")
	other.want("CLIENT UNPAUSE", "OK")
	if got := paused.next(); got != "(integer) 1" {
		t.Errorf("INCR answers %s", got)
	}
}

// TestDrainWaitsForMoves: a node that drains answers what waits for a move.
func TestDrainWaitsForMoves(t *testing.T) {
	n := startGaining(t, "k")
	c := dial(t, n.Addr())
	c.sendLines("INCR k", "INCR k")
	eventually(t, "it waits", func() bool { return waitForMoves(t, n) == 1 })
	drained := make(chan error, 1)
	go func() { drained <- n.Drain(t.Context()) }()
	eventually(t, "it drains", func() bool {
		conn, err := net.Dial("tcp", n.Addr())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	gain(n)
	for _, want := range []string{"(integer) 1", "(integer) 2"} {
		if got := c.next(); got != want {
			t.Errorf("INCR answers %s, want %s", got, want)
		}
	}
	if err := came(t, "Drain returns", drained); err != nil {
		t.Error(err)
	}
}
