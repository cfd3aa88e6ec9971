package node

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// The tests in this file are about faults that other servers had in their blocking commands. More of them: pushes
// from a transaction (TestBlockedByTransaction) and a script (TestScriptsWake), LMOVE (TestBlockedByMove), and a
// destination of the wrong type (TestBlockedWrongType).

// TestBlockedMultiKeyRace: of two pushes at the same time to two keys of a command one serves it, and the other stays.
func TestBlockedMultiKeyRace(t *testing.T) {
	n := startLeveled(t)
	w, c := dial(t, n.Addr()), dial(t, n.Addr())
	pushers := []*client{dial(t, n.Addr()), dial(t, n.Addr()), dial(t, n.Addr()), dial(t, n.Addr())}
	for i := range 200 {
		w.send("BLPOP {r}0 {r}1 {r}2 {r}3 0")
		awaitBlocked(t, n, 1)
		for j, p := range pushers {
			p.send(fmt.Sprintf("RPUSH {r}%d %d:%d", j, i, j))
		}
		left := len(pushers)
		for _, p := range pushers {
			p.wantNext("(integer) 1")
		}
		got := w.next()
		for j := range pushers {
			key := fmt.Sprintf("{r}%d", j)
			if got == poppedFrom(key, fmt.Sprintf("%d:%d", i, j)) {
				left--
				c.want("EXISTS "+key, "(integer) 0")
			}
		}
		c.want("DEL {r}0 {r}1 {r}2 {r}3", "(integer) 3")
		if left != len(pushers)-1 {
			t.Fatalf("round %d: BLPOP answers %s", i, got)
		}
	}
	awaitBlocked(t, n, 0)
}

// TestBlockedByRPopLPush: RPOPLPUSH serves those who wait for its destination, as LMOVE does, in a transaction and in a
// script as well.
func TestBlockedByRPopLPush(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for _, lines := range [][]string{
		{"RPOPLPUSH {m}a {m}b"},
		{"MULTI", "RPOPLPUSH {m}a {m}b", "EXEC"},
		{`EVAL "return redis.call('RPOPLPUSH', KEYS[1], KEYS[2])" 2 {m}a {m}b`},
	} {
		w := block(t, n, "BLPOP {m}b 0")
		c.want("RPUSH {m}a 1", "(integer) 1")
		for _, line := range lines {
			c.do(line)
		}
		w.wantNext(poppedFrom("{m}b", "1"))
		c.want("EXISTS {m}a {m}b", "(integer) 0")
	}
}

// TestBlockedPipelined: what a client has sent behind a blocking command is answered with it, whoever serves that.
func TestBlockedPipelined(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for _, lines := range [][]string{
		{"RPUSH {p}q 1"},
		{"MULTI", "RPUSH {p}q 1", "EXEC"},
		{`EVAL "return redis.call('RPUSH', KEYS[1], 1)" 1 {p}q`},
		{`EVAL "for i = 1, 1e5 do end return redis.call('RPUSH', KEYS[1], 1)" 1 {p}q`}, // which moves to a goroutine
	} {
		w := dial(t, n.Addr())
		w.sendRaw([]byte("BLPOP {p}q 0\r\nECHO behind\r\n"))
		awaitBlocked(t, n, 1)
		for _, line := range lines {
			c.do(line)
		}
		w.wantNext(poppedFrom("{p}q", "1"))
		w.wantNext(`"behind"`)
	}
}

// TestBlockedWrongTypeOnWake: a key that has had a value of the right type, and has one of another when its waiters are
// looked at, serves and tells nobody.
func TestBlockedWrongTypeOnWake(t *testing.T) {
	n := startLeveled(t)
	c, p := dial(t, n.Addr()), claimPipe(t, n)
	w := block(t, n, "BLPOP {w}q 0")
	z := block(t, n, "BZPOPMIN {w}q 0")
	p.send("DUNLIN CLAIM 0 l {w}q")
	p.wantRaw(later(1))
	for _, line := range []string{"MULTI", "RPUSH {w}q 1", "DEL {w}q", "SET {w}q string", "EXEC"} {
		c.do(line)
	}
	c.want("GET {w}q", `"string"`)
	awaitBlocked(t, n, 3)
	c.want("DEL {w}q", "(integer) 1")
	c.want("RPUSH {w}q a b", "(integer) 2")
	w.wantNext(poppedFrom("{w}q", "a"))
	p.wantRaw(told(1, member.Ready{}))
	c.want("LPOP {w}q", `"b"`)
	c.want("ZADD {w}q 1 m", "(integer) 1")
	z.wantNext("1) \"{w}q\"\n2) \"m\"\n3) \"1\"")
	awaitBlocked(t, n, 0)
}

// TestBlockedAfterDemotion: nobody who has waited at an owner takes anything from what comes to it as a follower.
func TestBlockedAfterDemotion(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	moving := altered(table, func(next *ring.Table) {
		next.Moves, next.Level = []ring.Move{{Partition: p, From: 0, To: 1}}, ring.Level
	})
	install(t, moving, nodes[:]...)
	w := block(t, nodes[0], "BLPOP "+key+" 0")
	pipe := claimPipe(t, nodes[0])
	pipe.send("BLPOP " + key + " 0")
	pipe.wantRaw(later(1))
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	moved := altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p], next.Follower[p] = nil, 1, 0 })
	nodes[1].SetTable(moved)
	eventually(t, "the new owner serves", nodes[1].Serving)
	elsewhere := fmt.Sprintf("(error) MOVED %d %s", ring.Slot([]byte(key)), nodes[1].Addr())
	w.wantNext(elsewhere)
	w.want("BLPOP "+key+" 0", elsewhere)
	awaitBlocked(t, nodes[0], 0)
	eventually(t, "the owner before follows", inSync(nodes[0], p))

	b := dial(t, nodes[1].Addr())
	b.want("RPUSH "+key+" 1 2 3", "(integer) 3")
	b.want("LPOP "+key, `"1"`)
	b.want("WAIT 0 0", "(integer) 0") // other partitions have no copy
	for _, s := range nodes[1].senders.List() {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	install(t, tableWithout(moved, 1), nodes[0], nodes[2])
	a := dial(t, nodes[0].Addr())
	a.want("LRANGE "+key+" 0 -1", "1) \"2\"\n2) \"3\"")
}
