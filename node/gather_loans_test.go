package node

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
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

// TestGatherOfManyKeys: a command borrows some keys at a time from other nodes, and one at a time
// while clients have to wait for the loops.
func TestGatherOfManyKeys(t *testing.T) {
	const keys = 100
	d := &slowDialer{took: 5 * time.Millisecond}
	nodes, table, _ := startLeveledTrio(t, func(c *Config) { c.Dialer = d.dial })
	var strained atomic.Bool
	strainBy(t, nodes[0], strained.Load)
	var clients [3]*client
	for i, n := range nodes {
		clients[i] = dial(t, n.Addr())
	}
	var names []string
	away := int32(0) // of them, at other nodes
	for i := 0; len(names) < keys; i++ {
		name := fmt.Sprint("set", i)
		if owner := table.Owner[partitionOf(name)]; len(names) > 0 || owner == 0 {
			clients[owner].want(fmt.Sprintf("SADD %s all %d", name, i), "(integer) 2")
			names = append(names, name)
			away += int32(min(owner, 1))
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
		if n, most := d.asks.Load(), d.most.Load(); n != away || busy && most != 1 || !busy && (most < 2 || most > loansAtOnce) {
			t.Errorf("strained %v: %d keys of %d are asked for, %d at a time", busy, n, away, most)
		}
	}
}

// TestBorrowHere: what a node borrows from itself is what it lends others, if it is short and a
// client would get it.
func TestBorrowHere(t *testing.T) {
	g := startCrossRig(t)
	n, c, p := g.nodes[0], g.clients[0], dialPeer(t, g.nodes[0])
	here := func(key string) *loan {
		t.Helper()
		left := newAllowance()
		l, err := n.borrowHere(0, []byte(g.names[key]), true, left)
		if err != nil {
			t.Fatal(err)
		}
		if l != nil {
			t.Cleanup(l.end)
			if took := maxLent - left.left.Load(); took != int64(len(l.payload())) {
				t.Errorf("%s takes %d of what may be borrowed, want %d", key, took, len(l.payload()))
			}
		}
		return l
	}
	for _, line := range []string{"SET A v PX 100000", "SADD B a b 1", "RPUSH C 1 2 3", "XADD D 1-1 f v", "ZADD E 1 m", "HSET F f v"} {
		c.do(g.words(line, false))
	}
	for _, key := range []string{"A", "B", "C", "D", "E", "F", "G"} {
		want, payload, err := borrow(p, g.names[key])
		l := here(key)
		switch {
		case err != nil:
			t.Fatal(err)
		case l == nil:
			t.Errorf("%s is not lent", key)
		case l.Found != want.Found || string(l.Version) != string(want.Version) || string(l.payload()) != string(payload) ||
			min(l.TTL, 0) != min(want.TTL, 0) && want.Found || l.TTL > 100_000:
			t.Errorf("%s is lent as %+v with %q, want %+v with %q", key, l.Lent, l.payload(), want, payload)
		}
	}
	refuses := func(why, key string) {
		t.Helper()
		if here(key) != nil {
			t.Errorf("a key is lent although %s", why)
		}
	}
	refuses("another node has it", "b")
	c.do("SETRANGE " + g.names["G"] + " 1000000 x")
	refuses("it takes long", "G")
	h := holdPartition(n, g.names["A"])
	refuses("somebody holds the partition", "A")
	h.End()
	n.fenced.Store(true)
	refuses("the node is fenced", "A")
	n.fenced.Store(false)
	moved := altered(g.table, func(next *ring.Table) { next.Owner[partitionOf(g.names["A"])] = 1 })
	install(t, moved, g.nodes[:]...)
	refuses("the partition has gone", "A")
	g.settings(map[string]string{ring.PinnedSetting: "8"})
	for _, changes := range []map[string]string{{}, ring.Closing{Databases: ring.Databases(0).With(9), Name: "x"}.Changes()} {
		g.settings(changes)
		for _, database := range []uint8{8, 9} {
			l, err := n.borrowHere(database, []byte(g.names["B"]), false, newAllowance())
			if lends := database == 9 && len(changes) == 0; err != nil || lends != (l != nil) {
				t.Errorf("a key of database %d is lent: %v, %v", database, l, err)
			}
		}
	}
}

// TestPanicBehindALoan: when a command panics, nobody waits for ever to bring what it has borrowed,
// and nothing is kept.
func TestPanicBehindALoan(t *testing.T) {
	g := startCrossRig(t)
	w := &gatherRun{node: g.nodes[0]}
	var places []int
	for i, key := range strings.Split("abcdefgh", "") {
		g.plain("SET " + key + " v")
		w.args, places = append(w.args, []byte(g.names[key])), append(places, i)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it does not panic")
			}
		}()
		err := w.borrowEach(t.Context(), places, func(int) bool { return false }, func(l lent) error {
			l.loan.end()
			panic("with one of several loans")
		})
		t.Errorf("it returns %v", err)
	}()
	eventually(t, "nobody waits", func() bool { return goroutinesIn(t, ".(*gatherRun).askEach.func") == 0 })
	g.wantNothingLeft()
}

// TestScratches: a scratch that was used is empty, and is used again. Few are kept, those that have
// grown are not, and all of them go.
func TestScratches(t *testing.T) {
	g := startCrossRig(t)
	n := g.nodes[0]
	all := &n.gathers.scratches
	idle := func() []*scratch {
		all.mu.Lock()
		defer all.mu.Unlock()
		return slices.Clone(all.idle)
	}
	g.plain("SADD A x y")
	g.plain("SADD b x y")
	if got := g.gather(0, "SINTERCARD 2 A b"); got != "(integer) 2" {
		t.Errorf("it answers %s", got)
	}
	first := idle()
	g.plain("DEL A")
	if got := g.gather(0, "SUNIONSTORE D A b X x"); got != "(integer) 2" {
		t.Errorf("it answers %s", got)
	}
	g.plain("DEL b")
	if got := g.gather(0, "SUNION A b D"); !strings.HasPrefix(got, "1) ") {
		t.Errorf("it answers %s", got)
	}
	if got := g.gather(0, "SINTERCARD 2 A b"); got != "(integer) 0" {
		t.Errorf("with nothing to be borrowed it answers %s", got)
	}
	if second := idle(); len(first) == 1 && !slices.Equal(first, second) {
		t.Error("a scratch is not used again")
	}
	g.wantNothingLeft()

	var used []*scratch
	for range scratchesKept + 2 {
		s, err := n.newScratch(resp.RESP2, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, s)
	}
	used[0].grow()
	used[1].halfway = true
	for _, s := range slices.Backward(used) {
		s.close()
	}
	if kept := idle(); len(kept) != scratchesKept || slices.Contains(kept, used[0]) || slices.Contains(kept, used[1]) {
		t.Errorf("%d scratches are kept, want %d", len(kept), scratchesKept)
	}
	g.wantNothingLeft()
	if got := g.gather(0, "SUNION A D"); !strings.HasPrefix(got, "1) ") {
		t.Errorf("it answers %s", got)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if left := len(idle()); left > 0 {
		t.Errorf("the end of the node leaves %d scratches", left)
	}
}
