package node

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestTransactionPublishesElsewhere: a client of a node publishes in a transaction on channels that other nodes have,
// or that lie in another slot than its keys, with and without keys.
func TestTransactionPublishesElsewhere(t *testing.T) {
	nodes, table, key := startLeveledTrio(t)
	here, elsewhere := "{"+key+"}c", keyIn(t, table, 1)
	for i, channel := range []string{here, elsewhere} {
		_, say := listeningPipe(t, nodes[i])
		if got, _ := say(member.Listen{Name: []byte(channel), Count: 3}); got != member.Noted {
			t.Fatalf("LISTEN is answered by %d", got)
		}
	}
	c := dial(t, nodes[0].Addr())
	publishes := []string{"PUBLISH " + elsewhere + " m", "PUBLISH " + here + " m"}
	for _, o := range []struct {
		commands []string
		want     string
	}{
		{append(publishes, "SET "+key+" 1"), "1) (integer) 3\n2) (integer) 3\n3) OK"},
		{append([]string{"SET " + key + " 1"}, publishes...), "1) OK\n2) (integer) 3\n3) (integer) 3"},
		{publishes, "1) (integer) 3\n2) (integer) 3"},
		{publishes[:1], "1) (integer) 3"},
		{[]string{"PUBLISH " + keyIn(t, table, 2) + " m"}, "1) (integer) 0"},
	} {
		if got := c.exec(o.commands...); got != o.want {
			t.Errorf("%q: EXEC answers %s", o.commands, got)
		}
	}
	for _, channel := range []string{here, elsewhere} { // a script does, too, also within a transaction
		for _, keys := range []string{"0", "1 " + key} {
			script := `EVAL "return redis.call('publish', '` + channel + `', 'm')" ` + keys
			c.want(script, "(integer) 3")
			if got := c.exec(script); got != "1) (integer) 3" {
				t.Errorf("%q: EXEC answers %s", script, got)
			}
		}
	}
}

// commands returns how often a node has executed a command.
func (n *Node) commands(t *testing.T, id command.ID) uint64 {
	t.Helper()
	var count atomic.Uint64
	if err := n.cfg.Group.Each(func(l *netloop.Loop) { count.Add(n.workers[l.Index()].Count.Commands[id]) }); err != nil {
		t.Fatal(err)
	}
	return count.Load()
}

// pipeline sends requests in one piece.
func (c *client) pipeline(lines ...string) {
	var raw []byte
	for _, line := range lines {
		raw = resp.AppendRequest(raw, words(c.t, line)...)
	}
	c.sendRaw(raw)
}

// TestMessagesTravelTogether: what a client of a node publishes in a pipeline, on channels that other nodes have, goes
// there in few batches, in order.
func TestMessagesTravelTogether(t *testing.T) {
	nodes, table, key := startLeveledTrio(t)
	const count = 1000
	channels := []string{keyIn(t, table, 1), keyIn(t, table, 2)}
	var listeners []*client
	for i, channel := range channels {
		p, say := listeningPipe(t, nodes[i+1])
		if got, _ := say(member.Listen{Name: []byte(channel), Count: 3}); got != member.Noted {
			t.Fatalf("LISTEN is answered by %d", got)
		}
		listeners = append(listeners, p)
	}
	before := nodes[1].commands(t, command.DunlinChallenge)
	c := dial(t, nodes[0].Addr())
	var lines []string
	for i := range count {
		for _, channel := range channels {
			lines = append(lines, fmt.Sprintf("PUBLISH %s %04d", channel, i))
		}
	}
	c.pipeline(lines...)
	for range count * len(channels) {
		if got := string(c.read()); got != ":3\r\n" {
			t.Fatalf("PUBLISH answers %q", got)
		}
	}
	for _, p := range listeners {
		for i := range count {
			m, ok := pubsub.ParseMessage(p.read())
			if want := fmt.Sprintf("%04d", i); !ok || string(m.Payload) != want {
				t.Fatalf("a listener hears %q, want %s", m.Payload, want)
			}
		}
	}
	if batches := nodes[1].commands(t, command.DunlinChallenge) - before; batches > count/10 {
		t.Errorf("%d messages came in %d batches", count, batches)
	}
	// Replies stay in order among other commands, and messages that this node publishes.
	a, b := channels[0], channels[1]
	c.pipeline("PUBLISH "+a+" 1", "PUBLISH "+b+" 2", "SET "+key+" v", "PUBLISH "+a+" 3", "PUBLISH "+key+" 4",
		"PUBLISH "+b+" 5", "PUBLISH "+a, "GET "+key)
	for i, want := range []string{
		":3", ":3", "+OK", ":3", ":0", ":3", "-ERR wrong number of arguments for 'publish' command", "$1\r\nv",
	} {
		if got := strings.TrimSuffix(string(c.read()), "\r\n"); got != want {
			t.Errorf("reply %d is %q, want %q", i, got, want)
		}
	}
}

// TestMessagesOutOfTurn: behind a message that a node refuses, it refuses others of the connection.
func TestMessagesOutOfTurn(t *testing.T) {
	nodes, table, here := startLeveledTrio(t)
	elsewhere := keyIn(t, table, 1)
	peer := dial(t, nodes[0].Addr())
	peer.want(`DUNLIN PEER 7 ""`, "OK")
	peer.want("DUNLIN PUBLISH publish "+here+" m", "(integer) 0")
	if got := peer.do("DUNLIN PUBLISH publish " + elsewhere + " m"); !strings.HasPrefix(got, "(error) MOVED ") {
		t.Errorf("a message of a channel that another node has is answered %s", got)
	}
	peer.want("DUNLIN PUBLISH publish "+here+" m", "(error) "+errTakingOver)
	peer.do("DUNLIN CHALLENGE")
	peer.want("DUNLIN PUBLISH publish "+here+" m", "(integer) 0")
}

// TestRefusedMessagesComeAgain: messages that are refused for now are sent again, in order, and each is answered as
// its own outcome is.
func TestRefusedMessagesComeAgain(t *testing.T) {
	nodes, table, _ := startLeveledTrio(t)
	channel := keyIn(t, table, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	answers := []string{
		":1\r\n", "-OOM no\r\n", "-TRYAGAIN\r\n", "-TRYAGAIN\r\n", "-TRYAGAIN\r\n", // all the others come again
		":3\r\n", "", // and the connection ends
	}
	var got []string
	done := make(chan bool)
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		serveFake(conn, func(line string) string {
			if !strings.HasPrefix(line, "PUBLISH ") {
				return "$1\r\nn\r\n"
			}
			got = append(got, line[len(line)-1:])
			return answers[len(got)-1]
		})
	}()
	nodes[0].SetTable(altered(table, func(next *ring.Table) {
		fake := next.Nodes[1]
		fake.ID, fake.Boot, fake.Addr = "fake", 3, l.Addr().String()
		next.Nodes = append(slices.Clone(next.Nodes), fake)
		next.Owner[partitionOf(channel)] = 3
	}))
	c := dial(t, nodes[0].Addr())
	publish := "PUBLISH " + channel
	c.pipeline(publish+" 1", publish+" 2", publish+" 3", publish+" 4", publish+" 5")
	unknown := "-" + string(errMaybePublished)
	for i, want := range []string{":1", "-OOM no", ":3", unknown, unknown} {
		if reply := strings.TrimSuffix(string(c.read()), "\r\n"); reply != want {
			t.Errorf("message %d is answered %q, want %q", i+1, reply, want)
		}
	}
	<-done
	if want := []string{"1", "2", "3", "4", "5", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("the owner gets %v, want %v", got, want)
	}
	eventually(t, "the memory of the messages is free", func() bool { return nodes[0].lists.Load() == 0 })
}
