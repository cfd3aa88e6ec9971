package node

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/ring"
)

func TestWait(t *testing.T) {
	a := startNode(t)
	b, _ := startReceiver(t)
	r := newRelay(t, b.Addr())
	c := dial(t, a.Addr())
	c.want("SET key value", "OK")
	begun := time.Now()
	c.want("WAIT 1 30", "(integer) 0")
	if took := time.Since(begun); took < 30*time.Millisecond {
		t.Errorf("WAIT gave up after %v, want 30 ms", took)
	}
	c.want("WAIT 0 0", "(integer) 0")

	s := a.senders.To(r.behind(b))
	syncAll(s)
	c.want("WAIT 1 0", "(integer) 1")
	c.want("SET key other", "OK")
	c.want("WAIT 1 5000", "(integer) 1")
	sameContents(t, a, b)
	c.want("WAIT 2 300", "(integer) 1") // the copy has to answer again by then
	if _, reply := c.each(&allPartitions, "WAIT 1 0"); inText(reply) != "(integer) 1" {
		t.Errorf("EACH WAIT answers %s", inText(reply))
	}

	// One partition that has no copy counts for all of them, unless it is not asked about.
	p := ring.PartitionOf([]byte("key"))
	s.Stop(p)
	c.want("WAIT 1 10", "(integer) 0")
	others := allPartitions
	others.Remove(p)
	if _, reply := c.each(&others, "WAIT 1 0"); inText(reply) != "(integer) 1" {
		t.Errorf("EACH WAIT about other partitions answers %s", inText(reply))
	}
	s.Sync(p, 1)
	c.want("WAIT 1 0", "(integer) 1")

	// Who does not answer has no copy.
	r.set(func() { r.stopped = true })
	c.want("SET key again", "OK")
	c.want("WAIT 1 200", "(integer) 0")
}

// waitsForCopies waits until so many clients wait for copies.
func waitsForCopies(t *testing.T, n *Node, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d clients wait", want), func() bool {
		var count atomic.Int64
		err := n.cfg.Group.Each(func(l *netloop.Loop) {
			for cn := range n.workers[l.Index()].conns {
				if cn.State.Waiting != nil {
					count.Add(1)
				}
			}
		})
		return err == nil && count.Load() == int64(want)
	})
}

// counters is how many goroutines count copies.
func counters(t *testing.T) int {
	t.Helper()
	return goroutinesIn(t, ".(*Node).countForAll(0x")
}

// goroutinesIn is how many times a function is on the stacks of goroutines.
func goroutinesIn(t *testing.T, function string) int {
	t.Helper()
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
		t.Fatal(err)
	}
	return bytes.Count(all.Bytes(), []byte(function))
}

// waitsForLock reports whether a goroutine in that function waits for a mutex.
func waitsForLock(function string) bool {
	all := make([]byte, 1<<20)
	for goroutine := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(goroutine, "[sync.Mutex.Lock") && strings.Contains(goroutine, function) {
			return true
		}
	}
	return false
}

// TestManyWait: one goroutine counts for all clients that wait, and each is answered when there are enough copies for
// it. The goroutine ends with the last of them: a WAIT without a limit lasts as long as its client.
func TestManyWait(t *testing.T) {
	a := startNode(t)
	b, _ := startReceiver(t)
	const clients = 3 * blockedAtOnce
	var enough, never []*client
	for range clients {
		for _, line := range []string{"WAIT 1 0", "WAIT 9 0"} {
			c := dial(t, a.Addr())
			c.send(line)
			if line == "WAIT 1 0" {
				enough = append(enough, c)
			} else {
				never = append(never, c)
			}
		}
	}
	waitsForCopies(t, a, 2*clients)
	if n := counters(t); n != 1 {
		t.Errorf("%d goroutines count for %d clients", n, 2*clients)
	}
	syncAll(a.senders.To(memberOf(b)))
	for _, c := range enough {
		c.wantNext("(integer) 1")
	}
	waitsForCopies(t, a, clients)
	for _, c := range never {
		c.conn.Close()
	}
	eventually(t, "nobody counts any more", func() bool { return counters(t) == 0 })
	a.copyWaits.mu.Lock()
	counting := a.copyWaits.counting
	a.copyWaits.mu.Unlock()
	if counting {
		t.Error("the goroutine has left, and counts as running")
	}
	c := dial(t, a.Addr())
	c.want("WAIT 1 0", "(integer) 1")
}

// TestWaitEndsByItself: the end of its time and CLIENT UNBLOCK do not wait for a count.
func TestWaitEndsByItself(t *testing.T) {
	a := startNode(t)
	b, _ := startReceiver(t)
	r := newRelay(t, b.Addr())
	s := a.senders.To(r.behind(b))
	syncAll(s)
	c, w := dial(t, a.Addr()), dial(t, a.Addr())
	w.want("WAIT 1 0", "(integer) 1")
	r.set(func() { r.stopped = true })
	w.want("SET key value", "OK")
	id := strings.TrimPrefix(w.do("CLIENT ID"), "(integer) ")
	w.want("WAIT 1 20", "(integer) 0")
	for how, want := range map[string]string{
		"": "(integer) 0", " TIMEOUT": "(integer) 0", " ERROR": "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK",
	} {
		w.send("WAIT 1 0")
		w.send("GET key")
		waitsForCopies(t, a, 1)
		c.want("CLIENT UNBLOCK "+id+how, "(integer) 1")
		w.wantNext(want)
		w.wantNext(`"value"`)
	}
}
