package proxy

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestListeningWaitsForTheOwnerBefore: a proxy may hear of a table before the node that this takes a channel
// from. That node still publishes, so the proxy ends nothing there, and does not follow, until it obeys.
func TestListeningWaitsForTheOwnerBefore(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	var mu sync.Mutex
	var said []string // to which node, mode, channel and count
	obeys := false
	for i, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.listen = func(args []string) member.Heard {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, n.name+" "+strings.Join(args[1:], " "))
				if i == 0 && obeys && args[3] != "0" {
					return member.NotOwner
				}
				return member.Noted
			}
		})
	}
	heard := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c")
	s.want("*3 $9 subscribe $1 c :1")
	begun := time.Now()
	c.route(func(int) int { return 1 })
	eventually(t, "it asks several times whether the node before obeys", func() bool { return len(heard()) >= 9 })
	if took := time.Since(begun); took < 20*listenPause {
		t.Errorf("it asks 8 times within %v", took)
	}
	for _, line := range heard() {
		if line != "n1 0 c 1" {
			t.Fatalf("before the node obeys, %q is said", line)
		}
	}
	mu.Lock()
	obeys, said = true, nil
	mu.Unlock()
	follows := "n2 2 c 1"
	eventually(t, "it follows", func() bool { l := heard(); return len(l) > 0 && l[len(l)-1] == follows })
	if got := strings.Join(heard(), ", "); got != "n1 0 c 1, n1 0 c 0, "+follows {
		t.Errorf("once the node obeys, %s is said", got)
	}
}

// TestListeningGoesByTheTable: a node that does not have the newest table yet sends requests back to the owner
// before. The proxy tells the next owner nothing else for that: whom it has announced there counts.
func TestListeningGoesByTheTable(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	var mu sync.Mutex
	var said []string // to the second node: mode, channel and count
	obeys := false
	c.nodes[0].set(func(n *fakeNode) {
		n.listen = func(args []string) member.Heard {
			mu.Lock()
			defer mu.Unlock()
			if obeys && args[3] != "0" {
				return member.NotOwner
			}
			return member.Noted
		}
	})
	back := fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte("c")), c.nodes[0].member().Addr)
	c.nodes[1].set(func(n *fakeNode) {
		n.refuse = func(string) string { return back }
		n.listen = func(args []string) member.Heard {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, strings.Join(args[1:], " "))
			return member.Noted
		}
	})
	last := func() string {
		mu.Lock()
		defer mu.Unlock()
		if len(said) == 0 {
			return ""
		}
		return said[len(said)-1]
	}
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c")
	s.want("*3 $9 subscribe $1 c :1")
	c.route(func(int) int { return 0 }, ring.Move{Partition: ring.PartitionOf([]byte("c")), From: 0, To: 1})
	eventually(t, "the next owner is told", func() bool { return last() == "1 c 1" })
	c.route(func(int) int { return 1 })
	other := c.dial()
	other.send("GET {c}")
	other.want("$-1")
	mu.Lock()
	obeys = true
	mu.Unlock()
	eventually(t, "the proxy follows", func() bool { return last() == "2 c 1" })
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(said, ", "); got != "1 c 1, 2 c 1" {
		t.Errorf("the next owner is told %s", got)
	}
}

// TestListeningAsksAgain: a node that does not have the proxy's table yet refuses to be the broker. The proxy
// asks again until it does not.
func TestListeningAsksAgain(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	refusals := 5
	c.nodes[0].set(func(n *fakeNode) {
		n.listen = func([]string) member.Heard { // called under n's lock
			if refusals--; refusals >= 0 {
				return member.NotOwner
			}
			return member.Noted
		}
	})
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c")
	s.want("*3 $9 subscribe $1 c :1")
}

// TestListeningFollowsBack: a channel comes back to a node at which the proxy has ended what it had
// there, before it has followed to the other one. So it follows to the first one again.
func TestListeningFollowsBack(t *testing.T) {
	for _, dies := range []bool{false, true} {
		c := newCluster(t, 2, oneLoop(t))
		var mu sync.Mutex
		var said []string
		owner := 0
		for i, n := range c.nodes {
			n.set(func(n *fakeNode) {
				n.listen = func(args []string) member.Heard {
					mu.Lock()
					defer mu.Unlock()
					said = append(said, n.name+" "+strings.Join(args[1:], " "))
					switch {
					case args[3] != "0" && (i == 1 || owner != 0): // the second node never takes over
						return member.NotOwner
					case dies && args[1] == "2":
						return member.Gapped
					}
					return member.Noted
				}
			})
		}
		have := func(line string) func() bool {
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.Contains(said, line)
			}
		}
		c.level = ring.PubSubLevel
		c.route(func(int) int { return 0 })
		s := c.dial()
		s.send("SUBSCRIBE c")
		s.want("*3 $9 subscribe $1 c :1")
		mu.Lock()
		owner = 1
		mu.Unlock()
		c.route(func(int) int { return 1 })
		eventually(t, "it tries to follow", have("n2 2 c 1"))
		mu.Lock()
		owner = 0
		mu.Unlock()
		gaps := uint64(0)
		if dies { // with what was published there
			c.nodes, gaps = c.nodes[:1], 1
		}
		c.route(func(int) int { return 0 })
		eventually(t, "it follows back", have("n1 2 c 1"))
		if got := c.stats().Gaps; got != gaps {
			t.Errorf("there are %d gaps, want %d", got, gaps)
		}
	}
}

// TestListeningToAnotherProcess: a node comes back at its address, and the proxy listens to it
// ahead of the table, as to the process before. When that connection has broken, too, the proxy
// does not follow: it would be shown again what it has heard.
func TestListeningToAnotherProcess(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	n := c.nodes[0]
	var mu sync.Mutex
	var said []string
	n.set(func(n *fakeNode) {
		n.listen = func(args []string) member.Heard {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, strings.Join(args[1:], " "))
			return member.Noted
		}
	})
	times := func(line string) (times int) {
		mu.Lock()
		defer mu.Unlock()
		for _, other := range said {
			if other == line {
				times++
			}
		}
		return times
	}
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c")
	s.want("*3 $9 subscribe $1 c :1")
	n.cut()
	eventually(t, "it listens again", func() bool { return times("0 c 1") == 2 })
	n.set(func(n *fakeNode) { n.name = "n9" })
	c.route(func(int) int { return 0 })
	n.cut()
	other := c.dial()
	other.send("SUBSCRIBE c")
	other.want("*3 $9 subscribe $1 c :1")
	if times("2 c 1")+times("2 c 2") > 0 {
		t.Errorf("it says %q, and must not follow", said)
	}
}

// TestListeningLateToPatterns: a node comes, which may have published before the proxy has told it of a pattern. Those
// who subscribed earlier may have missed that, and who subscribes now has not.
func TestListeningLateToPatterns(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	modes := make(chan string, 10)
	c.nodes[0].set(func(n *fakeNode) { n.listen = func([]string) member.Heard { return member.Noted } })
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s, other := c.dial(), c.dial()
	s.send("PSUBSCRIBE a*")
	s.want("*3 $10 psubscribe $2 a* :1")
	c.nodes = append(c.nodes, newFakeNode(t, "n2"))
	c.nodes[1].set(func(n *fakeNode) {
		n.listen = func(args []string) member.Heard {
			modes <- args[2] + " " + args[1]
			if args[1] == fmt.Sprint(member.Follow) {
				return member.Gapped
			}
			return member.Noted
		}
	})
	c.route(func(p int) int { return p % 2 })
	if got, want := <-modes, fmt.Sprint("a* ", member.Follow); got != want {
		t.Errorf("the new node is told %q, want %q", got, want)
	}
	other.send("PSUBSCRIBE b*")
	other.want("*3 $10 psubscribe $2 b* :1")
	if got, want := <-modes, fmt.Sprint("b* ", member.Live); got != want {
		t.Errorf("the new node is told %q, want %q", got, want)
	}
	eventually(t, "a gap is counted", func() bool { return c.stats().Gaps == 1 })
}

// TestListeningToNodesBetweenTables: a node comes and goes between two tables that the proxy sees. Nobody has told it
// of a pattern, so what it published is lost. Those of which it has heard do not count.
func TestListeningToNodesBetweenTables(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	c.nodes[0].set(func(n *fakeNode) { n.listen = func([]string) member.Heard { return member.Noted } })
	c.level = ring.GoneLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c", "PSUBSCRIBE a*")
	s.want("*3 $9 subscribe $1 c :1")
	s.want("*3 $10 psubscribe $2 a* :2")
	next := func(missed, gone, gaps uint64) {
		t.Helper()
		c.epoch += missed
		c.gone = gone
		c.route(func(int) int { return 0 })
		s.send("PSUBSCRIBE b*", "PUNSUBSCRIBE b*") // their answers come behind the table
		s.want("*3 $10 psubscribe $2 b* :3")
		s.want("*3 $12 punsubscribe $2 b* :2")
		if got := c.stats().Gaps; got != gaps {
			t.Errorf("%d gaps behind table %d, in which the last node that has gone had joined at %d, want %d", got, c.epoch, gone, gaps)
		}
	}
	seen := c.epoch
	next(2, seen, 0)
	next(2, seen+4, 1)
	next(2, seen+4, 1)
	next(0, 0, 1)
}

// TestListeningStaysWhereAChannelWasToCome: a channel goes to another node than the one that was to get it. What the
// proxy has said there stays until it is live at the owner: that node may serve for a moment, and
// then tells the owner of the proxy.
func TestListeningStaysWhereAChannelWasToCome(t *testing.T) {
	c := newCluster(t, 3, oneLoop(t))
	var mu sync.Mutex
	var said []string
	obeys := false
	for i, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.listen = func(args []string) member.Heard {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, n.name+" "+strings.Join(args[1:], " "))
				if i == 0 && obeys && args[3] != "0" {
					return member.NotOwner
				}
				return member.Noted
			}
		})
	}
	have := func(line string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(said, line)
		}
	}
	c.level = ring.PubSubLevel
	c.route(func(int) int { return 0 })
	s := c.dial()
	s.send("SUBSCRIBE c")
	s.want("*3 $9 subscribe $1 c :1")
	c.route(func(int) int { return 0 }, ring.Move{Partition: ring.PartitionOf([]byte("c")), From: 0, To: 1})
	eventually(t, "the next owner is told", have("n2 1 c 1"))
	c.route(func(int) int { return 2 })
	mu.Lock()
	obeys = true
	mu.Unlock()
	eventually(t, "it ends that", have("n2 0 c 0"))
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(said, "n3 2 c 1") {
		t.Errorf("it ends that ahead of following: %q", said)
	}
}

// TestListeningForgetsTheDead: an owner and its heir die, and the proxy tries to reach them until
// the next table. There is nothing to end at either of them then: the proxy asks the dead no more,
// and forgets what nobody subscribes to.
func TestListeningForgetsTheDead(t *testing.T) {
	c := newCluster(t, 3, oneLoop(t))
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.listen = func([]string) member.Heard { return member.Noted } })
	}
	c.level = ring.Level
	c.route(func(int) int { return 0 })
	s, follower := c.dial(), c.dial()
	s.send("SUBSCRIBE c", "PSUBSCRIBE a*")
	s.want("*3 $9 subscribe $1 c :1", "*3 $10 psubscribe $2 a* :2")
	follower.send("CLIENT TRACKING ON BCAST PREFIX x")
	follower.want("+OK")
	for _, n := range c.nodes[:2] {
		if err := n.ln.Close(); err != nil {
			t.Fatal(err)
		}
		n.cut()
	}
	c.route(func(int) int { return 0 }, ring.Move{Partition: ring.PartitionOf([]byte("c")), From: 0, To: 1})
	// ties returns how many ties to the dead and how many topics there are, and whether topics are
	// to be looked at.
	ties := func() (dead, topics int, busy bool) {
		c.onLoop(func(w *worker) {
			l := w.listening
			for _, of := range l.all {
				for _, at := range of.ties {
					if at.node.Member.ID != "n3" {
						dead++
					}
				}
			}
			topics, busy = len(l.all), l.left+len(l.ready)+len(l.blocked)+len(l.waiting) > 0
		})
		return dead, topics, busy
	}
	eventually(t, "it tries to reach the dead", func() bool { dead, _, busy := ties(); return dead == 6 && busy })
	c.nodes = c.nodes[2:]
	c.route(func(int) int { return 0 })
	eventually(t, "it leaves the dead alone", func() bool { dead, _, busy := ties(); return dead == 0 && !busy })
	s.send("UNSUBSCRIBE c", "PUNSUBSCRIBE a*")
	s.want("*3 $11 unsubscribe $1 c :1", "*3 $12 punsubscribe $2 a* :0")
	follower.send("CLIENT TRACKING OFF")
	follower.want("+OK")
	eventually(t, "it forgets all topics", func() bool { _, topics, busy := ties(); return topics == 0 && !busy })
}

// TestListeningWithdraws: a channel that has moved loses its last subscriber. The node before may
// have told the owner of subscribers, so the owner is told that there are none, however often its
// connection breaks before it answers.
func TestListeningWithdraws(t *testing.T) {
	for _, obeys := range []bool{false, true} { // the node before obeys the table when the subscriber goes
		c := newCluster(t, 2, oneLoop(t))
		c.level = ring.PubSubLevel
		c.route(func(int) int { return 0 })
		moved := false
		c.nodes[0].set(func(n *fakeNode) {
			n.listen = func(args []string) member.Heard { // called under n's lock
				if moved && args[3] != "0" {
					return member.NotOwner
				}
				return member.Noted
			}
		})
		follows, withdrawn := make(chan bool, 1), 0
		c.nodes[1].set(func(n *fakeNode) {
			n.listen = func(args []string) member.Heard {
				if args[3] == "0" {
					withdrawn++
				} else if len(follows) == 0 {
					follows <- true
				}
				if withdrawn < 3 {
					for nc := range n.conns {
						nc.Close()
					}
					n.conns = map[net.Conn]bool{}
				}
				return member.Noted
			}
		})
		s := c.dial()
		s.send("SUBSCRIBE c")
		s.want("*3 $9 subscribe $1 c :1")
		c.nodes[0].set(func(*fakeNode) { moved = obeys })
		c.route(func(int) int { return 1 })
		if obeys {
			came(t, "the proxy tries to follow", follows)
		}
		s.send("UNSUBSCRIBE c")
		s.want("*3 $11 unsubscribe $1 c :0")
		eventually(t, "the channel is forgotten", func() (forgotten bool) {
			c.onLoop(func(w *worker) { forgotten = len(w.listening.all) == 0 })
			return forgotten
		})
		c.nodes[1].set(func(*fakeNode) {
			if withdrawn != 3 {
				t.Errorf("with obeys %v the owner is told %d times of no subscribers, want 3", obeys, withdrawn)
			}
		})
	}
}
