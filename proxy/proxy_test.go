package proxy

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

func TestRepliesComeInOrderOfCommands(t *testing.T) {
	c := newCluster(t, 2)
	slow, fast := key(0, 2), key(1, 2)
	cl := c.dial()
	cl.send("GET "+slow, "GET "+fast) // opens the pipes
	cl.want("$-1", "$-1")
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	cl.send("SET "+slow+" a", "SET "+fast+" b", "GET "+fast, "PING", "GET "+slow, "GET "+fast)
	eventually(t, "the fast node executes", func() bool { return len(c.nodes[1].executed()) == 4 })
	close(gate)
	cl.want("+OK", "+OK", "$1 b", "+PONG", "$1 a", "$1 b")
}

func TestTwoProtocolsSideBySide(t *testing.T) {
	c := newCluster(t, 1)
	old, modern := c.dial(), c.dial()
	modern.send("HELLO 3", "GET none", "SET k v", "GET k")
	if hello := modern.reply(); !strings.HasPrefix(hello, "%") {
		t.Fatalf("HELLO 3 answered %q, want a map", hello)
	}
	modern.want("$-1", "+OK", "$1 v") // the fake node always says $-1
	old.send("GET k")
	old.want("$1 v")
	eventually(t, "a pipe for each protocol", func() bool {
		s, err := c.proxy.Stats()
		return err == nil && s.PipesOpen >= 2
	})
}

func TestSplitAndMerge(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := key(0, 3), key(1, 3), key(2, 3)
	cl := c.dial()
	cl.send("MSET "+a+" 1 "+b+" 2 "+d+" 3", "MGET "+d+" "+a+" none "+b, "EXISTS "+a+" "+a+" "+b+" none",
		"DEL "+a+" "+b, "MGET "+a+" "+d, "MSET "+a+" 1 "+b)
	cl.want("+OK", "*4 $1 3 $1 1 $-1 $1 2", ":3", ":2", "*2 $-1 $1 3",
		"-ERR wrong number of arguments for 'mset' command")
}

func TestCrossSlotIsRefused(t *testing.T) {
	c := newCluster(t, 2)
	cl := c.dial()
	cl.send("MSETNX a 1 b 2", "PING")
	cl.want("-CROSSSLOT Keys in request don't hash to the same slot", "+PONG")
}

func TestWholeClusterCommands(t *testing.T) {
	c := newCluster(t, 3)
	cl := c.dial()
	want := map[string]bool{}
	for i := range 200 {
		k := fmt.Sprintf("k%d", i)
		want[k] = true
		cl.send("SET " + k + " v")
		cl.want("+OK")
	}
	cl.send("DBSIZE")
	cl.want(":200")
	cl.send("KEYS *")
	if got := len(strings.Fields(cl.reply())); got != 1+2*200 {
		t.Errorf("KEYS * has %d words, want 401", got)
	}
	got := map[string]bool{}
	cursor, rounds := "0", 0
	for ; rounds == 0 || cursor != "0"; rounds++ {
		cl.send("SCAN " + cursor + " COUNT 7")
		words := strings.Fields(cl.reply()) // *2 $n cursor *n ($n key)…
		cursor = words[2]
		for i := 5; i < len(words); i += 2 {
			got[words[i]] = true
		}
		if rounds > 300 {
			t.Fatal("SCAN does not end")
		}
	}
	if len(got) != 200 || rounds < 200/(3*8) {
		t.Errorf("SCAN found %d keys in %d rounds, want 200 in several", len(got), rounds)
	}
	cl.send("SCAN abc", "SCAN -1", "SCAN 18446744073709551616", "FLUSHALL", "DBSIZE")
	cl.want("-ERR invalid cursor", "*2 $1 0 *0", "-ERR invalid cursor", "+OK", ":0")
}

// A node that covers only some of the partitions is asked again until all are covered.
func TestCensusGoesOnUntilAllIsCovered(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	cl.send("SET a 1", "SET b 2", "SET c 3")
	cl.want("+OK", "+OK", "+OK")
	asked := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.owns = func(p uint16) bool {
			asked++
			return asked > ring.Partitions || p%2 == 0 // the first time only even partitions
		}
	})
	cl.send("DBSIZE")
	cl.want(":3")
}

// A node that does not have the newest table yet redirects a partition to a node that served it by
// an older one. When that node has the newest table too, perhaps only the census asks for the
// partition, and must find its owner.
func TestCensusLeavesAnOldRedirection(t *testing.T) {
	k := key(1, 2)
	from := string(member.CursorAt(int(ring.PartitionOf([]byte(k))), 0).Append(nil))
	for line, reply := range map[string]string{"DBSIZE": ":0", "SCAN " + from + " COUNT 1000": "*2 $1 0 *0"} {
		t.Run(line, func(t *testing.T) {
			c := newCluster(t, 2, oneLoop(t))
			late := c.nodes[0].member().Addr
			c.nodes[1].set(func(n *fakeNode) {
				n.refuse = func(string) string { return fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte(k)), late) }
			})
			cl := c.dial()
			cl.send("SET " + k + " 1")
			cl.want("+OK")
			for i, n := range c.nodes {
				n.set(func(n *fakeNode) {
					n.refuse, n.data = nil, map[string]string{}
					n.owns = func(p uint16) bool { return int(p)%2 == i }
				})
			}
			cl.send(line)
			cl.want(reply)
		})
	}
}

func TestMovedIsFollowed(t *testing.T) {
	c := newCluster(t, 2)
	k := key(0, 2)
	there := c.nodes[1].member().Addr
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string { return fmt.Sprintf("-MOVED %d %s\r\n", ring.Slot([]byte(k)), there) }
	})
	cl := c.dial()
	cl.send("SET "+k+" 1", "INCR "+k, "INCR "+k, "GET "+k)
	cl.want("+OK", ":2", ":3", "$1 3")
}

// Commands that a node refuses while it takes over a partition are sent again, and nothing
// overtakes them.
func TestWaitKeepsTheOrder(t *testing.T) {
	c := newCluster(t, 1)
	refusals := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(k string) string {
			if refusals++; refusals <= 3 {
				return "-DUNLINWAIT\r\n"
			}
			return ""
		}
	})
	cl := c.dial()
	var lines, want []string
	for i := range 50 {
		lines = append(lines, "INCR k", fmt.Sprintf("SET other %d", i))
		want = append(want, fmt.Sprintf(":%d", i+1), "+OK")
	}
	cl.send(lines...)
	cl.want(want...)
	cl.send("GET other")
	cl.want("$2 49")
}

func TestBrokenPipe(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	cl.send("SET k 1")
	cl.want("+OK")
	// The node receives the commands and breaks before it answers them.
	c.nodes[0].set(func(n *fakeNode) {
		n.answer = func(args []string) (string, bool) {
			if args[0] == "INCR" {
				n.answer = nil
				return "", true // breaks the connection
			}
			return "", false
		}
	})
	cl.send("INCR k", "GET k", "SET k 7", "GET k", "PING")
	cl.want("-ERR the connection to the node broke after the command was sent, outcome unknown",
		"$1 1", "+OK", "$1 7", "+PONG")
	if s := c.stats(); s.LostReplies != 1 || s.ParkedTooLong != 0 {
		t.Errorf("%d replies are lost, %d requests expired; want that of INCR alone", s.LostReplies, s.ParkedTooLong)
	}
}

// Each command on its way to a node that dies counts once. It counts as lost if it must not be
// executed twice, or may be but finds no node afterwards; as expired if it only reads, or still waited
// for its turn on the pipe and so was never sent.
func TestDeadNodeLosesReplies(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Patience = 200 * time.Millisecond })
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	sent, queued := c.dial(), c.dial()
	sent.send("INCR k", "GET k", "MSET a 1 b 2")
	eventually(t, "commands are in flight", func() bool { return c.stats().Inflight == 3 })
	queued.send("INCR k", "GET k")
	eventually(t, "commands wait behind them", func() bool { return c.stats().Inflight == 5 })
	c.nodes[0].ln.Close()
	c.nodes[0].cut()
	close(gate)
	parked := "-TRYAGAIN no node could take the command in time, it was not executed; try again"
	sent.want(outcomeUnknown, parked, outcomeUnknown)
	queued.want(parked, parked)
	if s := c.stats(); s.LostReplies != 2 || s.ParkedTooLong != 3 {
		t.Errorf("%d replies are lost, %d requests expired; want 2 and 3", s.LostReplies, s.ParkedTooLong)
	}
}

// TestPartlyExecuted: when one node has executed its part of a command and another one has not, the
// client is not told that the command was not executed. A read was, or was not, and nobody cares.
func TestPartlyExecuted(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t), func(cfg *Config) { cfg.Patience = 200 * time.Millisecond })
	a, b := key(0, 2), key(1, 2)
	cl := c.dial()
	c.nodes[1].ln.Close()
	c.nodes[1].cut()
	parked := "TRYAGAIN no node could take the command in time, it was not executed; try again"
	cl.send("MSET "+a+" 1 "+b+" 2", "GET "+a, "MGET "+a+" "+b, "DEL "+b)
	cl.want("-ERR executed for some keys only: "+parked, "$1 1", "-"+parked, "-"+parked)
	// The same of a command over the whole cluster.
	cl.send("FLUSHALL", "DBSIZE")
	cl.want(strings.TrimSpace(string(errSomeNodes)), "-"+parked)
}

func TestSilentNodeIsCutOff(t *testing.T) {
	c := newCluster(t, 2, func(cfg *Config) { cfg.Silence = 250 * time.Millisecond })
	slow, fast := key(0, 2), key(1, 2)
	gate := make(chan struct{})
	cl := c.dial()
	cl.send("SET "+slow+" 1", "SET "+fast+" 1")
	cl.want("+OK", "+OK")
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	cl.send("INCR " + slow)
	other := c.dial()
	other.send("INCR " + fast)
	other.want(":2") // undisturbed
	start := time.Now()
	if got := cl.reply(); !strings.HasPrefix(got, "-ERR the connection to the node broke") {
		t.Errorf("got %q", got)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("a silent node was cut off after %v", d)
	}
	close(gate)
	cl.send("GET " + slow)
	if got := cl.reply(); got != "$1 1" && got != "$1 2" {
		t.Errorf("after the node came back: got %q", got)
	}
}

func TestParkedUntilATableComes(t *testing.T) {
	c := newCluster(t, 2)
	k := key(0, 2)
	cl := c.dial()
	cl.send("SET " + k + " 1")
	cl.want("+OK")
	c.nodes[0].ln.Close()
	c.nodes[0].cut()
	cl.send("INCR "+k, "INCR "+k, "GET "+key(1, 2))
	eventually(t, "the command is parked", func() bool {
		s, err := c.proxy.Stats()
		return err == nil && s.Parking > 0
	})
	c.route(func(int) int { return 1 })
	cl.want(":1", ":2", "$-1")
}

func TestParkedTooLong(t *testing.T) {
	c := newCluster(t, 1, func(cfg *Config) { cfg.Patience = 200 * time.Millisecond })
	c.nodes[0].ln.Close()
	cl := c.dial()
	cl.send("GET a", "MGET a b", "DBSIZE", "PING")
	parked := "-TRYAGAIN no node could take the command in time, it was not executed; try again"
	cl.want(parked, parked, parked, "+PONG")
}

// A part of a split command whose keys have other owners when it is sent again is split further.
func TestParkedPartIsSplitFurther(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := key(0, 3), key(1, 3), key(2, 3)
	cl := c.dial()
	c.route(func(int) int { return 0 })
	c.nodes[0].set(func(n *fakeNode) { n.refuse = func(string) string { return "-DUNLINWAIT\r\n" } })
	cl.send("MSET "+a+" 1 "+b+" 2 "+d+" 3", "MGET "+b+" "+d+" "+a, "PING")
	eventually(t, "the command is parked", func() bool {
		s, err := c.proxy.Stats()
		return err == nil && s.Refusals > 0
	})
	c.route(func(p int) int { return p % 3 })
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(key string) string {
			if key == a {
				return ""
			}
			return "-DUNLINWAIT\r\n" // the undivided request may still be on its way
		}
	})
	cl.want("+OK", "*3 $1 2 $1 3 $1 1", "+PONG")
	if got := c.nodes[1].executed(); !slices.Contains(got, "MSET "+b+" 2") {
		t.Errorf("n2 executed %q, want its part of MSET", got)
	}
}

func TestLargeValueKeepsTheOrder(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	big := strings.Repeat("x", 300<<10)
	cl.send("SET k small", "SET k "+big, "GET k", "SET k small", "GET k")
	cl.want("+OK", "+OK", fmt.Sprintf("$%d %s", len(big), big), "+OK", "$5 small")
}

func TestProtocolErrorClosesAfterWhatIsDue(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	cl.send("SET k v", "GET k")
	if _, err := cl.Write([]byte("*1\r\n$-5\r\n")); err != nil {
		t.Fatal(err)
	}
	cl.want("+OK", "$1 v", "-ERR Protocol error: invalid bulk length")
	cl.wantClosed()
}

func TestTooManyClients(t *testing.T) {
	c := newCluster(t, 1, func(cfg *Config) { cfg.MaxClients = 1 })
	first := c.dial()
	first.send("PING")
	first.want("+PONG")
	operator := c.dial() // all connect from this machine
	operator.send("PING")
	operator.want("+PONG")
	second := c.dial()
	second.want("-ERR max number of clients reached")
	second.wantClosed()
	first.send("PING")
	first.want("+PONG")
}

func TestDeepPipelineIsAnsweredInOrder(t *testing.T) {
	c := newCluster(t, 3)
	cl := c.dial()
	const n = 20000
	go func() {
		var b strings.Builder
		for i := range n {
			k := fmt.Sprintf("k%d", i)
			fmt.Fprintf(&b, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(k), k, len(k), k, len(k), k)
		}
		_, _ = cl.Write([]byte(b.String()))
	}()
	for i := range n {
		k := fmt.Sprintf("k%d", i)
		cl.want("+OK", fmt.Sprintf("$%d %s", len(k), k))
	}
}

func TestClientListSeesAllLoops(t *testing.T) {
	c := newCluster(t, 1)
	a, b := c.dial(), c.dial()
	a.send("CLIENT SETNAME first")
	a.want("+OK")
	b.send("CLIENT SETNAME second", "CLIENT LIST")
	b.want("+OK")
	if list := b.reply(); !strings.Contains(list, "name=first") || !strings.Contains(list, "name=second") {
		t.Errorf("CLIENT LIST answered %q", list)
	}
}

// A command about all loops waits for the replies that are due, is executed once, and counts once.
func TestClientListWaitsItsTurn(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	gate := make(chan struct{})
	c.nodes[0].set(func(n *fakeNode) { n.gate = gate })
	a := c.dial()
	a.send("GET a", "GET b", "GET c", "CLIENT LIST", "CLIENT PAUSE 0", "PING")
	for range 3 {
		gate <- struct{}{}
		a.want("$-1")
	}
	a.reply()
	a.want("+OK", "+PONG")
	s := c.stats()
	if lists, pauses := s.Commands[command.ClientList], s.Commands[command.ClientPause]; lists != 1 || pauses != 1 {
		t.Errorf("CLIENT LIST is counted %d times, CLIENT PAUSE %d times, want once", lists, pauses)
	}
}

func TestClientKill(t *testing.T) {
	c := newCluster(t, 1)
	a, b := c.dial(), c.dial()
	b.send("CLIENT ID")
	id := strings.TrimPrefix(b.reply(), ":")
	a.send("CLIENT KILL ID "+id, "SET k v")
	a.want(":1", "+OK")
	b.wantClosed()
	eventually(t, "only the survivor", func() bool { return c.stats().Clients == 1 })
	a.send("GET k", "CLIENT KILL TYPE normal SKIPME no", "DEL k")
	a.want("$1 v", ":1")
	a.wantClosed()
	d := c.dial()
	d.send("GET k") // the commands behind the kill were not executed
	d.want("$1 v")
}

func TestMonitor(t *testing.T) {
	c := newCluster(t, 2)
	m := c.dial()
	m.send("GET a", "MONITOR") // the reply to GET comes first
	m.want("$-1", "+OK")
	for range 3 { // on two loops
		a := c.dial()
		a.send("SET a v", "MGET a b", "NOSUCH", "PING")
		a.want("+OK")
		a.reply()
		a.reply()
		a.want("+PONG")
		for _, want := range []string{`"SET" "a" "v"`, `"MGET" "a" "b"`, `"PING"`} {
			if got := m.reply(); !strings.HasSuffix(got, "] "+want) {
				t.Fatalf("MONITOR shows %s, want %s", got, want)
			}
		}
	}
	m.send("GET a", "RESET")
	m.want("-ERR Replica can't interact with the keyspace", "+RESET")
	a := c.dial()
	a.send("SET a w")
	a.want("+OK")
	m.send("GET a")
	m.want("$1 w")
}

func TestQuitAndDrain(t *testing.T) {
	c := newCluster(t, 1)
	a, b := c.dial(), c.dial()
	a.send("SET k v", "QUIT", "GET k")
	a.want("+OK", "+OK")
	a.wantClosed()
	b.send("PING")
	b.want("+PONG")
	if err := c.proxy.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantClosed()
	if c.proxy.Ready() {
		t.Error("a drained proxy is ready")
	}
}

func TestHalfClosedClientIsAnswered(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	var lines, want []string
	for i := range 3000 { // more than may be outstanding at once
		lines = append(lines, "INCR k")
		want = append(want, fmt.Sprintf(":%d", i+1))
	}
	cl.send(lines...)
	if err := cl.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	cl.want(want...)
	cl.wantClosed()
}

func TestSilentClientIsClosed(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	m, cl := c.dial(), c.dial()
	m.send("MONITOR")
	m.want("+OK")
	c.setTimeout("1")
	cl.wantClosed()
	a := c.dial()
	a.send("PING")
	a.want("+PONG")
	if got := m.reply(); !strings.HasSuffix(got, `] "PING"`) {
		t.Errorf("who monitors, as silent as the other, sees %s", got)
	}
}
