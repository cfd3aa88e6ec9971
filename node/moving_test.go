package node

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// moving is how many requests wait for a move at the node's only loop.
func moving(t *testing.T, n *Node) (count int) {
	t.Helper()
	onItsLoop(t, n, func(w *worker) { count = w.moving.Len() })
	return count
}

// partedTrio is startLeveledTrio with a partition that moves from the first to the second node, whose copy is in
// sync. Once parted, no node reaches another one anew, until it is not parted any more.
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
		n.moverPatience = time.Hour
		tellLoops(t, n)
	}
	p := partitionOf(key)
	moves := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moves, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	moved = altered(moves, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 })
	return nodes, moved, key, parted
}

// TestClientsWaitForMoves: at no time of a move do both owners answer MOVED, or one of them TRYAGAIN: the owner before
// has requests wait until the next one obeys the table, and that one has them wait until it serves.
func TestClientsWaitForMoves(t *testing.T) {
	large := bigValue(300_000, 1)
	type conversation struct {
		name   string
		before []string // requests and replies that no move concerns
		send   func(c *client, k string)
		at     int      // of the replies, the one that is MOVED; -1: none is
		here   []string // the replies of the next owner
	}
	for _, test := range []conversation{
		{"a pipeline", nil, func(c *client, k string) {
			c.sendLines("PING", "SET {"+k+"}a 1", "INCR {"+k+"}a")
		}, 1, []string{"PONG", "OK", "(integer) 2"}},
		{"several keys", nil, func(c *client, k string) {
			c.sendLines("MSET {"+k+"}a 1 {"+k+"}b 2", "MGET {"+k+"}a {"+k+"}b")
		}, 0, []string{"OK", "1) \"1\"\n2) \"2\""}},
		{"a transaction", nil, func(c *client, k string) {
			c.sendLines("MULTI", "INCR {"+k+"}t", "EXEC", "PING")
		}, 2, []string{"OK", "QUEUED", "1) (integer) 1", "PONG"}},
		{"a long transaction", nil, func(c *client, k string) {
			c.sendLines("MULTI", "DEL"+strings.Repeat(" {"+k+"}l", 2*planAtOnce), "EXEC", "PING")
		}, 2, []string{"OK", "QUEUED", "1) (integer) 0", "PONG"}},
		{"a watch", nil, func(c *client, k string) {
			c.sendLines("WATCH {"+k+"}w", "PING")
		}, 0, []string{"OK", "PONG"}},
		{"many keys", nil, func(c *client, k string) {
			c.sendLines("DEL" + strings.Repeat(" {"+k+"}m", 5000))
		}, 0, []string{"(integer) 0"}},
		{"a large value", nil, func(c *client, k string) {
			c.sendRaw(bigRequest(t, "SET {"+k+"}v BIG", large))
			c.send("PING")
		}, 0, []string{"OK", "PONG"}},
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
				return c
			}
			wait := func(n *Node) {
				t.Helper()
				eventually(t, n.cfg.ID+" has the request wait", func() bool { return moving(t, n) == 1 })
			}
			parted.Store(true)
			nodes[0].SetTable(table)
			old := ask(nodes[0])
			wait(nodes[0])
			dial(t, nodes[1].Addr()).want("GET "+key, sayMoved+nodes[0].Addr()) // it does not know the table
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
			wait(nodes[0])
			parted.Store(false)
			for i, want := range test.here {
				if got := next.next(); got != want {
					t.Errorf("reply %d of the next owner is %s, want %s", i, got, want)
				}
			}
			for _, n := range nodes {
				if waiting := moving(t, n); waiting > 0 {
					t.Errorf("%d requests wait still", waiting)
				}
			}
		})
	}
}

// TestMovesHaveAnEnd: a request that has waited for a move for too long is refused, those behind it at once, and a
// client that leaves is forgotten.
func TestMovesHaveAnEnd(t *testing.T) {
	nodes, table, key, parted := partedTrio(t)
	parted.Store(true)
	defer parted.Store(false)
	nodes[1].SetTable(table)
	leaves, killed := dial(t, nodes[1].Addr()), dial(t, nodes[1].Addr())
	leaves.send("GET " + key)
	killed.want("CLIENT SETNAME waits", "OK")
	killed.send("GET " + key)
	eventually(t, "both wait", func() bool { return moving(t, nodes[1]) == 2 })
	other := dial(t, nodes[1].Addr())
	if list := other.do("CLIENT LIST"); !strings.Contains(list, "name=waits") {
		t.Errorf("CLIENT LIST has\n%s", list)
	}
	if err := leaves.conn.(*net.TCPConn).SetLinger(0); err != nil { // so that the node notices
		t.Fatal(err)
	}
	leaves.conn.Close()
	eventually(t, "one waits", func() bool { return moving(t, nodes[1]) == 1 })
	onItsLoop(t, nodes[1], func(w *worker) {
		for cn := range w.conns {
			if cn.moveWait != nil {
				cn.Kill()
			}
		}
	})
	eventually(t, "none waits", func() bool { return moving(t, nodes[1]) == 0 })

	onItsLoop(t, nodes[1], func(w *worker) { w.node.moverPatience = 10 * time.Millisecond })
	c := dial(t, nodes[1].Addr())
	c.want("GET "+key, saysTryAgain)
	onItsLoop(t, nodes[1], func(w *worker) { w.node.moverPatience = time.Hour })
	c.sendLines("INCR "+key, "GET "+key)
	for range 2 {
		if got := c.next(); got != saysTryAgain {
			t.Errorf("behind it, the reply is %s", got)
		}
	}
}
