package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// pinnedReady returns when the members know the pinned databases.
func pinnedReady(t *testing.T, c *harness.Cluster, want string) {
	t.Helper()
	for _, m := range c.ByRole("proxy") {
		harness.AwaitLevel(t, m.Addr)
		w := harness.DialWire(t, m.Addr)
		harness.Eventually(t, harness.ReadyTimeout, "databases are pinned", func() bool {
			return strings.HasSuffix(string(w.Do("CONFIG GET pinned-databases")), "\r\n"+want+"\r\n")
		})
	}
}

// pairPace is how often a pair is incremented at most. As fast as possible would take a processor from others.
const pairPace = time.Millisecond

// pair increments two counters of a pinned database in one transaction, again and again.
type pair struct {
	acknowledged, unknown atomic.Int64
	stop                  atomic.Bool
	done                  sync.WaitGroup
}

func startPair(t *testing.T, addr string) *pair {
	p, w := new(pair), harness.DialWire(t, addr)
	w.Want("SELECT 8", "OK")
	p.done.Go(func() {
		pace := time.NewTicker(pairPace)
		defer pace.Stop()
		for range pace.C {
			if p.stop.Load() {
				return
			}
			w.Send([]byte("MULTI\r\nINCR one\r\nINCR another\r\nEXEC\r\n"))
			for range 3 {
				w.Next()
			}
			switch reply := string(w.Next()); {
			case reply[0] == '*':
				p.acknowledged.Add(1)
			case !strings.HasPrefix(reply, "-TRYAGAIN"):
				p.unknown.Add(1)
			}
		}
	})
	return p
}

func (p *pair) end() {
	p.stop.Store(true)
	p.done.Wait()
}

// values reads both counters, which must be equal.
func values(t *testing.T, w *harness.Wire) int64 {
	t.Helper()
	parts := strings.Split(string(w.Do("MGET one another")), "\r\n")
	if len(parts) < 5 || parts[2] != parts[4] {
		t.Fatalf("the counters are %q", parts)
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPinnedDatabase: in a pinned database transactions and commands of unrelated keys are atomic while nodes join,
// leave and die. Members that join later know what is pinned.
func TestPinnedDatabase(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 3, Proxies: 1, NodeFlags: []string{"--copies", "2", "--pinned-databases", "8-9"},
	})
	pinnedReady(t, c, "8-9")
	w := harness.DialWire(t, c.Proxy(0).Addr)
	w.Want("SELECT 8", "OK")
	w.Want("MSET one 0 another 0", "OK")
	w.Want("CONFIG SET pinned-databases 9", "(error) ERR CONFIG SET failed (possibly related to argument 'pinned-databases')"+
		" - database 8 is not empty: FLUSHDB it, then set pinned-databases again")
	p := startPair(t, c.Proxy(0).Addr)
	check := func() {
		t.Helper()
		before := p.acknowledged.Load()
		harness.Eventually(t, harness.ReadyTimeout, "transactions go on", func() bool { return p.acknowledged.Load() > before+50 })
		values(t, w)
	}
	check()
	n4 := harness.NewMember(t, "node", "n4")
	n4.Flags = c.Node(0).Flags
	n4.Start()
	c.Members = append(c.Members, n4)
	p2 := harness.NewMember(t, "proxy", "p2")
	p2.Flags = c.Proxy(0).Flags
	p2.Start()
	c.Members = append(c.Members, p2)
	other := harness.DialWire(t, p2.Addr)
	other.Want("SELECT 8", "OK")
	other.Want("MSET x 1 y 2 z 3", "OK")
	other.Want(`EVAL "return redis.call('MGET', 'x', 'y', 'z')" 0`, "1) \"1\"\n2) \"2\"\n3) \"3\"")
	c.Converge(harness.ReadyTimeout)
	check()
	leaves, deaths := 3, 4
	if testing.Short() {
		leaves, deaths = 1, 2
	}
	for i := range leaves { // each of the first nodes leaves and returns
		m := c.Node(i)
		m.Term(30 * time.Second)
		c.Converge(harness.ReadyTimeout)
		m.Start()
		c.Converge(harness.ReadyTimeout)
		check()
	}
	p.end()
	if n, least := values(t, w), p.acknowledged.Load(); n < least || n > least+p.unknown.Load() {
		t.Errorf("the counters are %d, with %d acknowledged transactions and %d that may have been executed", n, least, p.unknown.Load())
	}
	p = startPair(t, c.Proxy(0).Addr)
	for i := range deaths { // each dies: what was not replicated yet is lost, and nothing in part
		m := c.Node(i)
		m.Kill()
		harness.Eventually(t, harness.ReadyTimeout, "the node is replaced", func() bool {
			_, why := c.Agreed()
			return why == ""
		})
		check()
		m.Start()
		c.Converge(harness.ReadyTimeout)
	}
	p.end()
	values(t, w)
}

// handOver has a client push elements of database 8 that another one waits for, until stop. Each must arrive.
func handOver(t *testing.T, from, to, queue string, stop *atomic.Bool, all *sync.WaitGroup) {
	push, pop := harness.DialWire(t, from), harness.DialWire(t, to)
	push.Want("SELECT 8", "OK")
	pop.Want("SELECT 8", "OK")
	all.Go(func() {
		for n := 0; !stop.Load(); n++ {
			pop.Send([]byte("BLPOP " + queue + " 0\r\n"))
			time.Sleep(time.Duration(n%5) * 20 * time.Millisecond)
			push.Send(fmt.Appendf(nil, "RPUSH %s %d\r\n", queue, n))
			pushed, popped := string(push.Next()), conversation.Text(pop.Next())
			if want := fmt.Sprintf("1) %q\n2) \"%d\"", queue, n); pushed != ":1\r\n" || popped != want {
				t.Errorf("RPUSH answers %q, BLPOP %s, want %s", pushed, popped, want)
				return
			}
		}
	})
}

// TestPinWhileClientsWrite: a change of the pinned databases is refused, or what was acknowledged is still there, and
// reaches those who wait for it. Clients of proxies see no error.
func TestPinWhileClientsWrite(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, NodeFlags: []string{"--copies", "2"}})
	pinnedReady(t, c, "")
	var stop atomic.Bool
	var all sync.WaitGroup
	for i := range 4 {
		w := harness.DialWire(t, c.Proxy(i%2).Addr)
		w.Want("SELECT 8", "OK")
		all.Go(func() {
			for n := 0; !stop.Load(); n++ {
				key := fmt.Sprintf("%d-%d", i, n%20)
				w.Send(fmt.Appendf(nil, "SET %s %d\r\nGET %s\r\nDEL %s\r\n", key, n, key, key))
				set, get, del := string(w.Next()), string(w.Next()), string(w.Next())
				if want := fmt.Sprintf("\r\n%d\r\n", n); set != "+OK\r\n" || !strings.HasSuffix(get, want) || del != ":1\r\n" {
					t.Errorf("SET answers %q, GET %q, DEL %q", set, get, del)
					return
				}
				time.Sleep(time.Duration(n%7) * 10 * time.Millisecond)
			}
		})
	}
	for i, queue := range []string{"q", "jobs"} {
		handOver(t, c.Proxy(i).Addr, c.Proxy(1-i).Addr, queue, &stop, &all)
	}
	w := harness.DialWire(t, c.Proxy(0).Addr)
	changes, databases := 0, "8"
	harness.Eventually(t, 2*harness.ReadyTimeout, "the setting changes four times", func() bool {
		reply := string(w.Do("CONFIG SET pinned-databases \"" + databases + "\""))
		switch {
		case reply == "+OK\r\n":
			changes++
			databases = map[string]string{"8": "", "": "8"}[databases]
		case !strings.Contains(reply, "is not empty"):
			t.Errorf("CONFIG SET answers %q", reply)
		}
		return changes == 4
	})
	stop.Store(true)
	all.Wait()
}

// waiters are clients of a proxy that wait for keys of database 8, by command.
type waiters map[string]*harness.Wire

// serves are what other clients do to serve them, and what they are answered then.
var serves = map[string][2]string{
	"BLPOP one 0":                       {"RPUSH one x", "1) \"one\"\n2) \"x\""},
	"BLMPOP 0 2 {m}e {m}f LEFT":         {"RPUSH {m}f x", "1) \"{m}f\"\n2) 1) \"x\""},
	"BZPOPMIN z 0":                      {"ZADD z 1 m", "1) \"z\"\n2) \"m\"\n3) \"1\""},
	"BLMOVE {m}from {m}to LEFT RIGHT 0": {"RPUSH {m}from x", `"x"`},
	"XREAD BLOCK 0 STREAMS s $":         {"XADD s 1-1 f v", "1) 1) \"s\"\n   2) 1) 1) \"1-1\"\n         2) 1) \"f\"\n            2) \"v\""},
}

// unblocked are those that are told to try again: their keys lie in several slots while the database is not pinned.
var unblocked = []string{"BLPOP a b c d 0", "BLMPOP 0 2 e f LEFT", "XREAD BLOCK 0 STREAMS g h $ $"}

func startWaiters(t *testing.T, addr string) waiters {
	t.Helper()
	all := waiters{}
	for _, line := range slices.Concat(unblocked, slices.Collect(maps.Keys(serves))) {
		all[line] = harness.DialWire(t, addr)
		all[line].Want("SELECT 8", "OK")
		all[line].Send([]byte(line + "\r\n"))
	}
	harness.Eventually(t, harness.ReadyTimeout, "the clients wait", func() bool {
		return strings.Count(string(harness.DialWire(t, addr).Do("CLIENT LIST")), " flags=b db=8 ") == len(all)
	})
	return all
}

// TestPinWhileClientsWait: clients that wait for keys of a database go on waiting when it is pinned, and when it is not
// any more: they are served, and time out. Those that wait for keys of several slots are told to try again.
func TestPinWhileClientsWait(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, NodeFlags: []string{"--copies", "2"}})
	pinnedReady(t, c, "")
	one, two := c.Proxy(0).Addr, c.Proxy(1).Addr
	w := harness.DialWire(t, one)
	w.Want("SELECT 8", "OK")
	for _, databases := range []string{"8-9", "", "8", "7"} {
		all := startWaiters(t, two)
		late := harness.DialWire(t, two)
		late.Want("SELECT 8", "OK")
		began := time.Now()
		late.Send([]byte("BLPOP never 2\r\n"))
		w.Want("CONFIG SET pinned-databases \""+databases+"\"", "OK")
		if got := string(late.Next()); got != "*-1\r\n" || time.Since(began) < 2*time.Second {
			t.Errorf("with %q pinned, BLPOP of 2 s answers %q after %v", databases, got, time.Since(began))
		}
		for _, line := range unblocked {
			if got := string(all[line].Next()); !strings.HasPrefix(got, "-UNBLOCKED ") {
				t.Errorf("with %q pinned, %s answers %q, want UNBLOCKED", databases, line, got)
			}
			delete(all, line)
		}
		for line, wire := range all {
			if got := conversation.Text(w.Do(serves[line][0])); strings.HasPrefix(got, "(error)") {
				t.Errorf("with %q pinned, %s answers %s", databases, serves[line][0], got)
			}
			if got := conversation.Text(wire.Next()); got != serves[line][1] {
				t.Errorf("with %q pinned, %s answers %s, want %s", databases, line, got, serves[line][1])
			}
		}
		w.Want("FLUSHDB", "OK")
	}
}
