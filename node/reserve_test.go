package node

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

func spelled(line string) (args [][]byte) { return bytes.Fields([]byte(line)) }

// reserveRig is a node in which partitions are reserved, for another node's command or one of its
// own, and a connection of a client.
type reserveRig struct {
	t    *testing.T
	node *Node
	c    *client
	here bool
	at   reserver
}

func startReserveRig(t *testing.T, here bool) *reserveRig {
	n := startLeveled(t)
	g := &reserveRig{t: t, node: n, c: dial(t, n.Addr()), here: here}
	g.open()
	return g
}

// bothReserve calls f for commands of other nodes, and for those of the same one.
func bothReserve(t *testing.T, f func(t *testing.T, g *reserveRig)) {
	t.Run("there", func(t *testing.T) { f(t, startReserveRig(t, false)) })
	t.Run("here", func(t *testing.T) { f(t, startReserveRig(t, true)) })
}

// peerReserver is a connection that another node would have.
type peerReserver struct{ *member.Peer }

func (p peerReserver) end(bool) { p.Close() }

// open begins anew with nothing reserved.
func (g *reserveRig) open() {
	g.t.Helper()
	if !g.here {
		g.at = peerReserver{dialPeer(g.t, g.node)}
		return
	}
	a := &attempt{gatherRun: &gatherRun{node: g.node}, ctx: g.node.ctx}
	g.at = a.newReservedHere()
}

// reserve and within compare a reply, or the beginning of an error.
func (g *reserveRig) reserve(line, want string) {
	g.t.Helper()
	reply, err := g.at.Reserve(0, spelled(line)...)
	g.compare(line, want, reply, err)
}

func (g *reserveRig) within(further member.Further, line, want string) {
	g.t.Helper()
	reply, err := g.at.Within(further, spelled(line)...)
	g.compare(line, want, reply, err)
}

func (g *reserveRig) compare(line, want string, reply []byte, err error) {
	g.t.Helper()
	got := strings.TrimSpace(string(reply))
	var refused *member.Refusal
	if errors.As(err, &refused) {
		got = "-" + refused.Text
	} else if err != nil {
		g.t.Fatal(err)
	}
	if got != want && (want[0] != '-' || !strings.HasPrefix(got, want)) {
		g.t.Errorf("%s answers %q, want %q", line, got, want)
	}
}

func (g *reserveRig) holds(want int) {
	g.t.Helper()
	eventually(g.t, "there are as many holds as are wanted", func() bool { return len(g.node.engine.Holds()) == want })
}

// TestReserve: nobody else uses a partition that is reserved, until the last command there.
func TestReserve(t *testing.T) {
	bothReserve(t, func(t *testing.T, g *reserveRig) {
		g.c.want("RPUSH {l} a b c", "(integer) 3")
		g.reserve("LINDEX {l} 0", "$1\r\na")
		g.reserve("SCARD {s}", ":0")
		g.reserve("LLEN {l}2", ":0") // in the same partition
		g.holds(2)
		other := dial(t, g.node.Addr())
		other.send("LLEN {l}")
		other.send("PING")
		g.within(member.GoesOn, "RPUSH {l} d", ":4")
		g.within(member.GoesOn, "LPUSH {l}2 x", ":1")
		g.within(member.IsLast, "LPOP {l}", "$1\r\na")
		g.holds(1)
		if got := other.next(); got != "(integer) 3" {
			t.Errorf("a client reads %s", got)
		}
		other.next()
		g.within(member.IsCopied, "SADD {s} m", ":1")
		g.holds(0)
		g.within(member.IsLast, "LPOP {l}", "-"+member.Lapsed)
		g.c.want("LLEN {l}", "(integer) 3")
		if n, err := g.at.Release(); n != 0 || err != nil {
			t.Errorf("%d are released, %v", n, err)
		}
	})
}

// TestReserveEnds: what is reserved ends with RELEASE, with its connection, and after some time.
func TestReserveEnds(t *testing.T) {
	bothReserve(t, func(t *testing.T, g *reserveRig) {
		g.c.want("SADD {s} m", "(integer) 1")
		g.reserve("SISMEMBER {s} m", ":1")
		g.reserve("SISMEMBER {s2} m", ":0")
		if n, err := g.at.Release(); n != 2 || err != nil {
			t.Errorf("%d are released, %v", n, err)
		}
		g.holds(0)
		begun := time.Now()
		g.reserve("SISMEMBER {s} m", ":1")
		g.c.want("SREM {s} m", "(integer) 1")
		if took := time.Since(begun); took < reserveLapse-100*time.Millisecond { // much later it would have been refused
			t.Errorf("it lapses after %v", took)
		}
		g.within(member.IsLast, "SREM {s} m", "-"+member.Lapsed)
		g.at.end(false)
		g.open()
		g.reserve("SISMEMBER {s} m", ":0")
		g.at.end(false)
		g.holds(0)
	})
}

// TestReserveEndsBehindACopy: what lapses while a follower is waited for ends behind that, with all other reservations.
func TestReserveEndsBehindACopy(t *testing.T) {
	g := startCrossRig(t)
	to, from := g.names["D"], g.names["A"]
	p := partitionOf(to)
	g.table = altered(g.table, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, g.table, g.nodes[:]...)
	eventually(t, "b has the copy", inSync(g.nodes[1], p))
	peer := dialPeer(t, g.nodes[0])
	for _, key := range []string{from, to} {
		if _, err := peer.Reserve(0, spelled("LLEN "+key)...); err != nil {
			t.Fatal(err)
		}
	}
	release := holdLoops(t, g.nodes[1])
	if _, err := peer.Conn.Write(member.AppendWithin(nil, member.IsCopied, spelled("RPUSH "+to+" x")...)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the element is stored", func() bool { return len(g.nodes[0].engine.Holds()) == 1 })
	err := g.nodes[0].cfg.Group.Each(func(l *netloop.Loop) {
		for cn := range g.nodes[0].workers[l.Index()].conns {
			if v := cn.reserved; v != nil {
				v.lapse.Stop() // it has fired
				cn.dropReserved()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is reserved", func() bool { return len(g.nodes[0].engine.Holds()) == 0 })
	release()
	g.wantNothingLeft()
}

// TestReserveRefusals: what cannot be reserved is refused; an error of a command leaves its partition reserved.
func TestReserveRefusals(t *testing.T) {
	bothReserve(t, func(t *testing.T, g *reserveRig) {
		for _, line := range []string{"GET k", "LRANGE k 0 -1", "EXISTS a b", "FLUSHALL ASYNC", "NOSUCH a", "BLPOP k 0", "LLEN k k"} {
			g.reserve(line, "-"+errBadReserve)
			g.within(member.IsLast, line, "-"+errBadReserve)
		}
		g.c.want("SET {k} v", "OK")
		g.reserve("LLEN {k}", "-WRONGTYPE ")
		g.holds(1)
		g.within(member.IsLast, "LPUSH {k} v", "-WRONGTYPE ")
		g.holds(0)
		g.reserve("LLEN {k}2", ":0")
		g.node.fenced.Store(true)
		g.within(member.IsLast, "LPUSH {k}2 v", "-"+member.Lapsed)
		g.holds(0)
		g.reserve("LLEN {k}2", "-TRYAGAIN ")
		g.node.fenced.Store(false)
		g.c.want("EXISTS {k}2", "(integer) 0")
		giveAway(g.node, partitionOf("away"))
		g.reserve("LLEN away", map[bool]string{false: "-MOVED ", true: "-TRYAGAIN "}[g.here]) // its new owner is asked then
		g.c.want("DUNLIN RESERVE 16 LLEN k", "(error) "+errBadReserve)
		g.c.want("DUNLIN WITHIN 3 LLEN k", "(error) "+errBadReserve)
	})
}

// TestReserveLongElement: an element of up to 64 KiB moves, a longer one does not.
func TestReserveLongElement(t *testing.T) {
	bothReserve(t, func(t *testing.T, g *reserveRig) {
		for _, size := range []int{maxElement - 100, maxElement, maxElement + 100} {
			g.c.want("DEL {l} {m}", "(integer) "+map[bool]string{true: "0", false: "2"}[size == maxElement-100])
			element := bytes.Repeat([]byte("x"), size)
			g.c.sendArgs([]byte("RPUSH"), []byte("{l}"), element)
			g.c.next()
			reply, err := g.at.Reserve(0, spelled("LINDEX {l} 0")...)
			if size > maxElement {
				g.compare("LINDEX", "-CROSSSLOT ", nil, err)
				continue
			}
			if err != nil || len(reply) < size {
				t.Fatalf("%d bytes come as %d, %v", size, len(reply), err)
			}
			g.reserve("LLEN {m}", ":0")
			if _, err := g.at.Within(member.IsCopied, []byte("RPUSH"), []byte("{m}"), element); err != nil {
				t.Fatal(err)
			}
			if reply, err := g.at.Within(member.IsLast, []byte("LPOP"), []byte("{l}")); err != nil || len(reply) < size {
				t.Errorf("%d bytes are popped as %d, %v", size, len(reply), err)
			}
			g.c.want("RPUSH {l} again", "(integer) 1")
		}
		eventually(t, "nothing is charged", func() bool { return g.node.lists.Load() == 0 })
	})
}

// TestReservationsEndInTurns: however many partitions a connection has reserved, few of them end in one turn of its
// loop, and meanwhile nothing more is reserved or executed. RELEASE is answered when all have ended.
func TestReservationsEndInTurns(t *testing.T) {
	const partitions = 3*endsAtOnce + 1
	g := startReserveRig(t, false)
	reserve := func() {
		for i, seen := 0, map[uint16]bool{}; len(seen) < partitions; i++ {
			key := fmt.Sprint("k", i)
			if p := partitionOf(key); !seen[p] {
				seen[p] = true
				g.reserve("EXISTS "+key, ":0")
				g.within(member.GoesOn, "MSETNX "+key+" v", ":1")
			}
		}
	}
	reserve()
	left := 0
	err := g.node.cfg.Group.Each(func(l *netloop.Loop) {
		for cn := range g.node.workers[l.Index()].conns {
			if v := cn.reserved; v != nil {
				cn.dropReserved()
				left = len(v.all)
			}
		}
	})
	if err != nil || left != partitions-endsAtOnce {
		t.Errorf("behind one turn %d of %d partitions are reserved, %v", left, partitions, err)
	}
	g.within(member.IsLast, "MSETNX k0 v", "-"+member.Lapsed)
	g.holds(0)
	g.c.want("DBSIZE", "(integer) 0")

	reserve()
	if n, err := g.at.Release(); n != partitions || err != nil {
		t.Errorf("%d of %d partitions are released, %v", n, partitions, err)
	}
	g.holds(0)
	g.c.want("DBSIZE", fmt.Sprint("(integer) ", partitions))
	g.reserve("EXISTS k0", ":1")
	g.at.end(false)
	g.holds(0)
	eventually(t, "nothing is charged", func() bool { return g.node.lists.Load() == 0 })
}

// TestReserveOfALeavingPartition: a node that reserves its own partition while a table takes that
// away does not have it. No barrier waits for the goroutine, so the view of before may be at hand.
func TestReserveOfALeavingPartition(t *testing.T) {
	g := startReserveRig(t, true)
	p := partitionOf("away")
	x := g.node.engine.Lock(p, g.node.cfg.Group.UnixMilli())
	unlock := sync.OnceFunc(x.Unlock)
	defer unlock()
	answered := make(chan error, 1)
	go func() {
		_, err := g.at.Reserve(0, spelled("LLEN away")...)
		answered <- err
	}()
	eventually(t, "it waits for the shard", func() bool { return waitsForLock("holdHere") })
	obeyed := make(chan struct{})
	go func() {
		giveAway(g.node, p)
		close(obeyed)
	}()
	eventually(t, "the partition leaves", func() bool { return g.node.view.Load().Standing[p] != ownership.Serving })
	unlock()
	if err := came(t, "the answer", answered); err == nil {
		t.Error("a partition is reserved that another node may serve")
	} else {
		g.compare("LLEN", "-TRYAGAIN ", nil, err)
	}
	came(t, "the end of the table's barrier", obeyed)
	g.holds(0)
}
