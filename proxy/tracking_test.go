package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/internal/tracking"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// trackingCluster has a node that does not take prefixes which begin with "bad".
func trackingCluster(t *testing.T, heard func(name, count string), change ...func(*Config)) *rig {
	c := newCluster(t, 1, append(change, oneLoop(t))...)
	c.nodes[0].set(func(n *fakeNode) {
		n.listen = func(args []string) member.Heard {
			if heard(args[2], args[3]); strings.HasPrefix(args[2], "bad") && args[3] != "0" {
				return member.TooMany
			}
			return member.Noted
		}
	})
	c.level = ring.Level
	c.route(func(int) int { return 0 })
	return c
}

// onLoop runs f on the loop of a proxy that has one.
func (c *rig) onLoop(f func(w *worker)) {
	c.t.Helper()
	c.each(func(l *netloop.Loop) { f(c.proxy.workers[l.Index()]) })
}

var refusedPrefixes = strings.TrimSuffix(string(errManyFollowed), "\r\n")

// TestTrackingGoesOnAfterARefusal: a CLIENT TRACKING that is refused takes nothing from the ones before.
func TestTrackingGoesOnAfterARefusal(t *testing.T) {
	told := make(chan string, 100)
	c := trackingCluster(t, func(name, count string) { told <- name + " " + count })
	s := c.dial()
	s.send("CLIENT TRACKING ON BCAST PREFIX bad0")
	s.want(refusedPrefixes)
	s.send("CLIENT TRACKINGINFO")
	s.want("*6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0")
	s.send("CLIENT TRACKING ON BCAST PREFIX a")
	s.want("+OK")
	s.send("CLIENT TRACKING ON BCAST NOLOOP PREFIX bad1")
	s.want(refusedPrefixes)
	s.send("CLIENT TRACKINGINFO")
	s.want("*6 $5 flags *2 $2 on $5 bcast $8 redirect :0 $8 prefixes *1 $1 a")
	s.send("CLIENT TRACKING ON BCAST PREFIX x", "CLIENT TRACKING ON BCAST PREFIX bad2", "CLIENT TRACKING ON BCAST PREFIX c",
		"CLIENT TRACKING ON BCAST NOLOOP", "PING")
	s.want("+OK", refusedPrefixes, refusedPrefixes, refusedPrefixes, "+PONG")
	s.send("CLIENT TRACKINGINFO", "CLIENT TRACKING OFF", "PING")
	s.want("*6 $5 flags *2 $2 on $5 bcast $8 redirect :0 $8 prefixes *2 $1 a $1 x", "+OK", "+PONG")
	counts := map[string]string{}
	eventually(t, "the node knows that nobody follows anything", func() bool {
		for len(told) > 0 {
			name, count, _ := strings.Cut(<-told, " ")
			counts[name] = count
		}
		left := false
		c.onLoop(func(w *worker) { left = len(w.listening.all) > 0 || len(w.tracking.table.Prefixes()) > 0 })
		return !left && counts["a"] == "0" && counts["x"] == "0"
	})
}

// TestTrackingOffWhileAsking: a refusal that comes late concerns the CLIENT TRACKING that it was about, and none
// after it.
func TestTrackingOffWhileAsking(t *testing.T) {
	asked, gate := make(chan bool, 10), make(chan bool)
	c := trackingCluster(t, func(name, _ string) {
		if name == "bad" {
			asked <- true
			<-gate
		}
	})
	s := c.dial()
	s.send("CLIENT TRACKING ON BCAST PREFIX bad")
	came(t, "the question", asked)
	s.send("CLIENT TRACKING OFF", "CLIENT TRACKING ON BCAST PREFIX a", "CLIENT TRACKING ON BCAST PREFIX ab2 PREFIX c")
	s.want("+OK", "+OK")
	eventually(t, "it asks again", func() (asks bool) {
		c.onLoop(func(w *worker) {
			t := w.clients[0].tracker
			asks = t != nil && slices.Contains(t.follows, "a")
		})
		return asks
	})
	close(gate)
	s.want("+OK", "-ERR Prefix 'ab2' overlaps with an existing prefix 'a'. Prefixes for a single client must not overlap.")
	s.send("CLIENT TRACKING OFF", "CLIENT TRACKING ON BCAST PREFIX ab2", "PING")
	s.want("+OK", "+OK", "+PONG")
}

// TestTrackingAsksInPauses: a node that does not take a prefix which sessions follow already is asked again, in pauses,
// and when it takes it at last, they forget everything.
func TestTrackingAsksInPauses(t *testing.T) {
	var refuses atomic.Bool
	var asked atomic.Int32
	c := newCluster(t, 1, oneLoop(t))
	c.nodes[0].set(func(n *fakeNode) {
		n.listen = func([]string) member.Heard {
			if refuses.Load() {
				asked.Add(1)
				return member.TooMany
			}
			return member.Noted
		}
	})
	c.level = ring.Level
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("HELLO 3")
	s.reply()
	s.send("CLIENT TRACKING ON BCAST PREFIX a")
	s.want("+OK")
	refuses.Store(true)
	c.nodes[0].cut()
	s.want(">2 $10 invalidate _")
	eventually(t, "it asks", func() bool { return asked.Load() > 0 })
	begun, before := time.Now(), asked.Load()
	eventually(t, "it asks again", func() bool { return asked.Load() >= before+10 })
	if took := time.Since(begun); took < 8*listenPause {
		t.Errorf("it asks %d times within %v", asked.Load()-before, took)
	}
	refuses.Store(false)
	s.want(">2 $10 invalidate _")
}

// TestRedirectedDuringALargeReply: what others redirect to a client that is sent a large reply waits for its end,
// and of too many of them one is left.
func TestRedirectedDuringALargeReply(t *testing.T) {
	for _, count := range []int{3, 10_000} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			c := newTicketCluster(t, 1)
			value, gate := hugeValue(3*fetchPiece), make(chan bool)
			c.nodes[0].set(func(n *fakeNode) {
				n.data = map[string]string{"k": value}
				n.fetch = func([]string) (string, bool) { <-gate; return "", false }
			})
			s := c.dial()
			s.send("HELLO 3")
			s.reply()
			s.send("GET k")
			var target *client
			eventually(t, "the reply is on its way", func() (cuts bool) {
				c.onLoop(func(w *worker) {
					target = w.clients[0]
					cuts = target.isCutting()
				})
				return cuts
			})
			gathered := 0
			c.onLoop(func(*worker) { gathered = target.gathered })
			for i := range count {
				target.Redirected(fmt.Sprint("key", i), false)
			}
			c.onLoop(func(*worker) {
				held := target.redirected
				if held == nil {
					t.Error("nothing waits")
				} else if held.bytes > tracking.MaxHeld || target.gathered != gathered+held.bytes {
					t.Errorf("%d bytes wait, and %d more are gathered", held.bytes, target.gathered-gathered)
				}
			})
			close(gate)
			s.want(text(value))
			if count == 3 {
				for i := range count {
					s.want(fmt.Sprintf(">2 $10 invalidate *1 $4 key%d", i))
				}
			} else {
				s.want(">2 $10 invalidate _")
				for last := ""; last != fmt.Sprintf(">2 $10 invalidate *1 $7 key%d", count-1); {
					last = s.reply()
				}
			}
			c.onLoop(func(*worker) {
				if target.gathered != gathered || target.redirected != nil {
					t.Errorf("%d bytes are still gathered", target.gathered)
				}
			})
		})
	}
}

// TestFollowersAreToldOnceOfAFlush: a FLUSHALL of all nodes is one event for a client that follows prefixes, told when
// the last node has told it. If one never does, the client is told nonetheless.
func TestFollowersAreToldOnceOfAFlush(t *testing.T) {
	c := newCluster(t, 3, oneLoop(t))
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.listen = func([]string) member.Heard { return member.Noted } })
	}
	c.level = ring.Level
	c.route(func(p int) int { return p % 3 })
	s := c.dial()
	s.send("HELLO 3")
	s.reply()
	s.send("CLIENT TRACKING ON BCAST PREFIX a")
	s.want("+OK")
	push := func(w *worker, node int, g member.Gone) {
		if !w.listening.heard(w.order.Nodes()[node], member.AppendGone(nil, g)) {
			t.Error("the push is not understood")
		}
	}
	flushed, null := member.Gone{All: true, Flushed: true}, ">2 $10 invalidate _"
	c.onLoop(func(w *worker) {
		push(w, 0, flushed)
		push(w, 2, flushed)
		push(w, 0, flushed)
		push(w, 1, member.Gone{ByPrefix: true, Key: []byte("a1")}) // what comes before is told before
		push(w, 1, flushed)
	})
	s.want(">2 $10 invalidate *1 $2 a1", null)
	s.send("PING")
	s.want("+PONG")
	c.onLoop(func(w *worker) {
		push(w, 1, flushed)                // nothing is left of the last one, and nobody else tells of this one
		push(w, 0, member.Gone{All: true}) // another reason waits for nobody
	})
	s.want(null, null)
	c.route(func(p int) int { return p % 2 })
	c.onLoop(func(w *worker) {
		push(w, 0, flushed)
		push(w, 1, flushed)
		if len(w.tracking.flushedBy) > 0 {
			t.Error("it waits for a node without partitions, which is not asked to flush")
		}
	})
	s.want(null)
	c.onLoop(func(w *worker) {
		if here := &w.tracking; here.patience != nil || len(here.flushedBy) > 0 {
			t.Errorf("it still waits for those who have not told what %v have", here.flushedBy)
		}
	})
}

// TestPrefixesHaveNoGaps: a session that follows a prefix is told to forget everything when the connection to a node
// breaks, so it misses nothing. Only the pattern next to it counts a gap.
func TestPrefixesHaveNoGaps(t *testing.T) {
	c := trackingCluster(t, func(string, string) {})
	s := c.dial()
	s.send("HELLO 3")
	s.reply()
	s.send("CLIENT TRACKING ON BCAST PREFIX a", "PSUBSCRIBE b*")
	s.want("+OK", ">3 $10 psubscribe $2 b* :1")
	c.nodes[0].cut()
	s.want(">2 $10 invalidate _")
	eventually(t, "a gap is counted", func() bool { return c.stats().Gaps > 0 })
	s.send("PSUBSCRIBE c*") // the answer comes when all that is told is told again
	s.want(">3 $10 psubscribe $2 c* :2")
	if got := c.stats().Gaps; got != 1 {
		t.Errorf("%d gaps are counted, want one", got)
	}
}

// TestCopiesAreToldOfMarks: what a pipe that tracks tells concerns copies, and nobody who follows prefixes.
func TestCopiesAreToldOfMarks(t *testing.T) {
	c := trackingCluster(t, func(string, string) {})
	follows, reads := c.dial(), c.dial()
	for _, s := range []*conn{follows, reads} {
		s.send("HELLO 3")
		s.reply()
	}
	follows.send("CLIENT TRACKING ON BCAST PREFIX a")
	reads.send("CLIENT TRACKING ON", "GET a1")
	follows.want("+OK")
	reads.want("+OK", "$-1")
	c.onLoop(func(w *worker) {
		w.order.Nodes()[0].Each(func(p *order.Pipe) {
			if p.Lane.Tracks {
				w.shellOf(p).pushed(member.AppendGone(nil, member.Gone{All: true}))
			}
		})
	})
	reads.want(">2 $10 invalidate _")
	follows.send("PING")
	follows.want("+PONG")
}

// TestFollowedPrefixesAreCharged: prefixes take memory of the session that follows them, as long as it does. Without it
// CLIENT TRACKING is refused, and leaves the one before.
func TestFollowedPrefixesAreCharged(t *testing.T) {
	room := &budget{most: 64 << 20}
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Buffers = room })
	c.nodes[0].set(func(n *fakeNode) { n.listen = func([]string) member.Heard { return member.Noted } })
	c.level = ring.Level
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("HELLO 3")
	s.reply()
	s.send("CLIENT TRACKING ON BCAST PREFIX first")
	s.want("+OK")
	const size, count = 4000, 60
	var line strings.Builder
	prefixes := []string{"first"}
	for i := range count {
		prefixes = append(prefixes, fmt.Sprintf("%04d%s", i, strings.Repeat("x", size)))
		fmt.Fprint(&line, " PREFIX ", prefixes[i+1])
	}
	var before int64
	c.onLoop(func(w *worker) {
		before = w.account.Other()
		room.most = 0
		w.clients[0].state.SetTracking(&session.Tracking{BCast: true, Prefixes: prefixes})
		if !w.clients[0].track() {
			t.Error("it is not answered")
		}
		room.most = 64 << 20
	})
	s.want(strings.TrimSuffix(string(errNoTracking), "\r\n"))
	s.send("CLIENT TRACKINGINFO")
	s.want("%3 $5 flags ~2 $2 on $5 bcast $8 redirect :0 $8 prefixes *1 $5 first")
	s.send("CLIENT TRACKING ON BCAST" + line.String())
	s.want("+OK")
	took := func() (bytes int64) {
		c.onLoop(func(w *worker) { bytes = w.account.Other() - before })
		return bytes
	}
	if n := took(); n < 2*size*count {
		t.Errorf("%d bytes are charged for the prefixes, want %d", n, 2*size*count)
	}
	s.send("CLIENT TRACKING OFF")
	s.want("+OK")
	if n := took(); n > size {
		t.Errorf("%d bytes are charged when nobody follows prefixes any more", n)
	}
}
