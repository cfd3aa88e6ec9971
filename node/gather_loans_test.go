package node

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/ring"
)

// slowDialer dials connections over which each request takes a while, and counts them.
type slowDialer struct {
	asks, busy, most atomic.Int32
	took             time.Duration
}

type slowConn struct {
	net.Conn
	of *slowDialer
}

func (d *slowDialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	return slowConn{c, d}, err
}

func (c slowConn) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "LEND") {
		c.of.asks.Add(1)
		for now := c.of.busy.Add(1); ; {
			if most := c.of.most.Load(); now <= most || c.of.most.CompareAndSwap(most, now) {
				break
			}
		}
		time.Sleep(c.of.took)
		c.of.busy.Add(-1)
	}
	return c.Conn.Write(b)
}

// TestGatherOfManyKeys: a command borrows some keys at a time, and one at a time while clients have
// to wait for the loops.
func TestGatherOfManyKeys(t *testing.T) {
	const keys = 100
	d := &slowDialer{took: 5 * time.Millisecond}
	nodes, table, _ := startTrio(t, func(c *Config) { c.Dialer = d.dial })
	table = altered(table, func(next *ring.Table) { next.Level = ring.Level })
	install(t, table, nodes[:]...)
	var strained atomic.Bool
	once := sync.OnceFunc(func() { nodes[0].strained = strained.Load })
	if err := nodes[0].cfg.Group.Each(func(*netloop.Loop) { once() }); err != nil {
		t.Fatal(err)
	}
	var clients [3]*client
	for i, n := range nodes {
		clients[i] = dial(t, n.Addr())
	}
	var names []string
	for i := 0; len(names) < keys; i++ {
		name := fmt.Sprint("set", i)
		if owner := table.Owner[partitionOf(name)]; len(names) > 0 || owner == 0 {
			clients[owner].want(fmt.Sprintf("SADD %s all %d", name, i), "(integer) 2")
			names = append(names, name)
		}
	}
	p := claimPipe(t, nodes[0])
	for _, busy := range []bool{false, true} {
		strained.Store(busy)
		d.asks.Store(0)
		d.most.Store(0)
		begun := time.Now()
		p.send("DUNLIN GATHER SINTERCARD 100 " + strings.Join(names, " "))
		if got := p.completed(); got != "(integer) 1" {
			t.Errorf("SINTERCARD answers %s", got)
		}
		took := time.Since(begun)
		t.Logf("strained %v: %v, %d at a time", busy, took, d.most.Load())
		if n, most := d.asks.Load(), d.most.Load(); n != keys || busy && most != 1 || !busy && (most < 2 || most > loansAtOnce) {
			t.Errorf("strained %v: %d keys are borrowed, %d at a time", busy, n, most)
		}
	}
}
