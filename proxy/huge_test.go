package proxy

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// hugeValue has no two equal megabytes.
func hugeValue(bytes int) string {
	for ; len(hugeText.made) < bytes; hugeText.next++ {
		hugeText.made = append(strconv.AppendInt(hugeText.made, int64(hugeText.next), 10), ',')
	}
	return string(hugeText.made[:bytes])
}

// hugeText is what hugeValue has made: its values begin alike.
var hugeText struct {
	made []byte
	next int
}

// A long request reaches the node unchanged and in its turn, and leaves nothing behind.
func TestHugeRequest(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	k, value := key(0, 2), hugeValue(5<<20)
	for _, size := range []int{len(value), order.HugeRequest - 10, 3 << 20} {
		cl.send("SET "+k+" before", "SET "+k+" "+value[:size], "GET "+key(1, 2), "SET "+k+":after 1", "GET "+k)
		cl.want("+OK", "+OK", "$-1", "+OK")
		if got := cl.reply(); got != fmt.Sprintf("$%d %s", size, value[:size]) {
			t.Fatalf("%d bytes came back as %d others", size, len(got))
		}
	}
	c.wantNothingKept()
}

// wantNothingKept waits until no session, pipe or parked request has memory.
func (c *rig) wantNothingKept() {
	c.t.Helper()
	eventually(c.t, "the end of all buffers", func() bool {
		var kept atomic.Int64
		for _, w := range c.proxy.workers {
			done := make(chan struct{})
			w.loop.Post(func() {
				kept.Add(w.account.Used())
				close(done)
			})
			<-done
		}
		return kept.Load() < 256<<10
	})
}

// A long request is sent again, whole, if a node refuses it or its pipe breaks.
func TestHugeRequestIsSentAgain(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	cl := c.dial()
	value := hugeValue(4 << 20)
	var times atomic.Int32
	tries := func(n *fakeNode) { n.refuse = nil; n.answer = nil; times.Store(0) }
	for what, misbehave := range map[string]func(n *fakeNode){
		"refused": func(n *fakeNode) {
			n.refuse = func(string) string {
				if times.Add(1) > 2 {
					return ""
				}
				return "-DUNLINWAIT\r\n"
			}
		},
		"cut off": func(n *fakeNode) {
			n.answer = func([]string) (string, bool) { return "", times.Add(1) <= 2 }
		},
	} {
		c.nodes[0].set(misbehave)
		cl.send("SET k "+value, "SET other x")
		cl.want("+OK", "+OK")
		if n := times.Load(); n < 3 {
			t.Errorf("%s: %d tries", what, n)
		}
		c.nodes[0].set(tries)
		cl.send("GET k")
		if got := cl.reply(); got != fmt.Sprintf("$%d %s", len(value), value) {
			t.Fatalf("%s: %d other bytes came back", what, len(got))
		}
	}
	c.wantNothingKept()
}

// Long parts of a split command go to the pipes without a copy, and are sent again unchanged.
func TestHugePartsAreSentAgain(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	a, b := key(0, 2), key(1, 2)
	value := hugeValue(3 << 20)
	for what, reply := range map[string]string{"refused": "-DUNLINWAIT\r\n", "cut off": ""} {
		gate := make(chan struct{})
		times := 0
		c.nodes[0].set(func(n *fakeNode) {
			n.gate = gate
			n.answer = func([]string) (string, bool) {
				times++
				return reply, times <= 2
			}
		})
		cl.send("MSET " + a + " " + value + " " + b + " " + value[1:])
		eventually(t, "a part that is not copied", func() (owned bool) {
			w := c.proxy.workers[0]
			done := make(chan struct{})
			w.loop.Post(func() {
				defer close(done)
				p := w.order.Owner(ring.PartitionOf([]byte(a))).Pipe(order.Lane{Kind: member.Huge, Version: resp.RESP2})
				owned = p.IsLong() && p.MayWait()
			})
			<-done
			return owned
		})
		close(gate)
		cl.want("+OK")
		c.nodes[0].set(func(n *fakeNode) { n.gate, n.answer = nil, nil })
		cl.send("MGET " + a + " " + b)
		cl.want("*2 " + text(value) + " " + text(value[1:]))
		if times < 3 {
			t.Errorf("%s: %d tries", what, times)
		}
	}
	c.wantNothingKept()
}

// Small commands of other clients do not wait behind a long request; other long requests do. A
// client that disconnects at any point leaves nothing behind.
func TestHugeRequestsTakeTurns(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	gate := make(chan struct{}, 100)
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	value := hugeValue(3 << 20)
	first, second, gone := c.dial(), c.dial(), c.dial()
	first.send("SET a " + value)
	eventually(t, "a long request on its way", func() bool { return c.stats().Inflight == 1 })
	go second.send("SET b " + value)
	go fmt.Fprintf(gone, "*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$%d\r\n%s\r\n", len(value), value) // may be cut off
	small := c.dial()
	small.send("GET a")
	gate <- struct{}{}
	gate <- struct{}{}
	first.want("+OK")
	small.reply()
	gone.Close()
	close(gate)
	second.want("+OK")
	c.wantNothingKept()

	cut := c.dial()
	if _, err := fmt.Fprintf(cut, "*3\r\n$3\r\nSET\r\n$1\r\nd\r\n$%d\r\n%s", 5<<20, value); err != nil {
		t.Fatal(err)
	}
	cut.Close()
	c.wantNothingKept()
}

// A request that is parked for a node that never returns is given up, and its memory is freed.
func TestHugeRequestIsGivenUp(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Patience = 300 * time.Millisecond })
	c.nodes[0].ln.Close()
	cl := c.dial()
	cl.send("SET k " + hugeValue(2<<20))
	if got := cl.reply(); !strings.HasPrefix(got, "-TRYAGAIN") {
		t.Fatalf("got %q", got)
	}
	c.wantNothingKept()
}
