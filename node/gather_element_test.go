package node

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// fakeOwner makes a key that of a node which answers as is said: a reply, or nothing and the end of the connection.
func (g *crossRig) fakeOwner(key string, answer func(line string) string) {
	g.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveFake(conn, answer)
		}
	}()
	g.table = altered(g.table, func(next *ring.Table) {
		fake := next.Nodes[1]
		fake.ID, fake.Boot, fake.Addr = "fake", 3, l.Addr().String()
		next.Nodes = append(slices.Clone(next.Nodes), fake)
		next.Owner[partitionOf(g.names[key])] = 2
	})
	for _, n := range g.nodes {
		n.SetTable(g.table)
	}
}

func serveFake(conn net.Conn, answer func(line string) string) {
	defer conn.Close()
	var parser resp.Parser
	var in []byte
	for {
		buffer := make([]byte, 4096)
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		for in = append(in, buffer[:n]...); len(in) > 0 && parser.Parse(in) == resp.Done; in = in[parser.Len():] {
			words := make([]string, 0, 8)
			for _, arg := range parser.Args() {
				words = append(words, string(arg))
			}
			reply := "+OK\r\n"
			if words[1] != "PEER" {
				reply = answer(strings.Join(words[1:], " "))
			}
			if _, err := conn.Write([]byte(reply)); err != nil || reply == "" {
				return
			}
		}
	}
}

// fakeReplies gives its replies in order, and notes what it was asked.
type fakeReplies struct {
	mu      sync.Mutex
	replies []string
	asked   []string
}

func (s *fakeReplies) answer(line string) (reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb, _, _ := strings.Cut(line, " ")
	s.asked = append(s.asked, verb)
	if len(s.replies) == 0 {
		return ""
	}
	reply, s.replies = s.replies[0], s.replies[1:]
	return reply
}

// TestElementWhoseSourceFails: whatever the owner of the first key does behind the moment at which
// the element is stored, the reply says what has become of it, and nothing is taken that somebody
// else has put there.
func TestElementWhoseSourceFails(t *testing.T) {
	const lapsed = "-DUNLINLAPSED\r\n"
	for _, f := range []struct {
		line    string
		replies []string
		asked   string
		want    string
		stored  string
	}{
		{"SMOVE b D m", []string{":1\r\n", ":1\r\n"}, "RESERVE WITHIN", "(integer) 1", "(integer) 1"},
		{"SMOVE b D m", []string{":1\r\n"}, "RESERVE WITHIN", "(error) " + string(errBoth), "(integer) 1"},
		{"SMOVE b D m", []string{":1\r\n", lapsed, ":1\r\n", ":1\r\n"}, "RESERVE WITHIN RESERVE WITHIN", "(integer) 1", "(integer) 1"},
		{"SMOVE b D m", []string{":1\r\n", lapsed, ":0\r\n", ":1\r\n"}, "RESERVE WITHIN RESERVE RELEASE", "(error) " + string(errBoth), "(integer) 1"},
		{"SMOVE b D m", []string{"", ":1\r\n", ":1\r\n"}, "RESERVE RESERVE WITHIN", "(integer) 1", "(integer) 1"},
		{"SMOVE b D m", []string{"-TRYAGAIN later\r\n", ":1\r\n", ":1\r\n"}, "RESERVE RESERVE WITHIN", "(integer) 1", "(integer) 1"},
		{"SMOVE b D m", []string{lapsed, ":1\r\n", ":1\r\n"}, "RESERVE RESERVE WITHIN", "(integer) 1", "(integer) 1"},
		{"SMOVE b D m", []string{"-BUSY a script\r\n", ":1\r\n"}, "RESERVE RELEASE", "(error) BUSY a script", "(integer) 0"},
		{"LMOVE b D LEFT LEFT", []string{"$1\r\nx\r\n", lapsed, "$1\r\nx\r\n", "$1\r\nx\r\n"}, "RESERVE WITHIN RESERVE WITHIN", `"x"`, "(integer) 1"},
		{"LMOVE b D LEFT LEFT", []string{"$1\r\nx\r\n", lapsed, "$1\r\ny\r\n", ":1\r\n"}, "RESERVE WITHIN RESERVE RELEASE", "(error) " + string(errBoth), "(integer) 1"},
		{"LMOVE b D LEFT LEFT", []string{"$1\r\nx\r\n", lapsed, "$-1\r\n", ":1\r\n"}, "RESERVE WITHIN RESERVE RELEASE", "(error) " + string(errBoth), "(integer) 1"},
		{"LMOVE b D LEFT LEFT", []string{"$1\r\nx\r\n", "-OOM\r\n", "$1\r\nx\r\n", "$1\r\nx\r\n"}, "RESERVE WITHIN RESERVE WITHIN", `"x"`, "(integer) 1"},
		{"LMOVE b D LEFT LEFT", []string{"$1\r\nx\r\n", "-ERR executed, but there was no memory for the reply\r\n"}, "RESERVE WITHIN", `"x"`, "(integer) 1"},
	} {
		g := startCrossRig(t)
		s := &fakeReplies{replies: f.replies}
		g.fakeOwner("b", s.answer)
		if got := g.gather(0, f.line); got != f.want {
			t.Errorf("%s with %q answers %s, want %s", f.line, f.replies, got, f.want)
		}
		s.mu.Lock()
		if asked := strings.Join(s.asked, " "); asked != f.asked {
			t.Errorf("%s with %q asks %s, want %s", f.line, f.replies, asked, f.asked)
		}
		s.mu.Unlock()
		g.clients[0].want("EXISTS "+g.names["D"], f.stored)
		g.wantNothingLeft()
	}
}

// TestElementsCrossing: moves in both directions at once wait for each other, not for ever.
func TestElementsCrossing(t *testing.T) {
	g := startCrossRig(t)
	for i := range 20 {
		g.clients[0].do(fmt.Sprintf("RPUSH %s %d", g.names["A"], i))
		g.clients[1].do(fmt.Sprintf("RPUSH %s %d", g.names["b"], i))
	}
	begun := time.Now()
	for range 20 {
		g.pipes[1].send("DUNLIN GATHER " + g.words("LMOVE A b LEFT RIGHT", false))
		g.pipes[0].send("DUNLIN GATHER " + g.words("RPOPLPUSH b A", false))
		for _, p := range g.pipes {
			if got := p.completed(); !strings.HasPrefix(got, `"`) {
				t.Errorf("it answers %s", got)
			}
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it takes %v", took)
	}
	g.clients[0].want("LLEN "+g.names["A"], "(integer) 20")
	g.clients[1].want("LLEN "+g.names["b"], "(integer) 20")
	g.wantNothingLeft()
}

// TestElementIsCopied: when the reply comes the follower of the second key has the element, which
// was taken from the first one behind that. Who waits for the second key is served.
func TestElementIsCopied(t *testing.T) {
	g := startCrossRig(t)
	p := partitionOf(g.names["D"])
	g.table = altered(g.table, func(next *ring.Table) { next.Follower[p] = 1 })
	install(t, g.table, g.nodes[:]...)
	eventually(t, "b has the copy", inSync(g.nodes[1], p))
	for i := range 20 {
		g.clients[1].want("SADD "+g.names["b"]+" m", "(integer) 1")
		if got := g.gather(0, "SMOVE b D m"); got != "(integer) 1" {
			t.Errorf("SMOVE answers %s", got)
		}
		if n := g.nodes[1].engine.Count(p); n != 1 {
			t.Errorf("in round %d the follower has %d keys", i, n)
		}
		g.clients[0].want("DEL "+g.names["D"], "(integer) 1")
		eventually(t, "the follower has nothing", func() bool { return g.nodes[1].engine.Count(p) == 0 })
	}
	waits := dial(t, g.nodes[0].Addr())
	waits.send("BLPOP " + g.names["D"] + " 0")
	eventually(t, "it waits", func() bool { s, err := g.nodes[0].Stats(); return err == nil && s.Blocked == 1 })
	g.clients[1].want("RPUSH "+g.names["b"]+" one", "(integer) 1")
	if got := g.gather(0, "LMOVE b D LEFT LEFT"); got != `"one"` {
		t.Errorf("LMOVE answers %s", got)
	}
	if got := waits.next(); !strings.Contains(got, `"one"`) {
		t.Errorf("who waits gets %s", got)
	}
	g.clients[0].want("EXISTS "+g.names["D"], "(integer) 0")
	g.clients[1].want("EXISTS "+g.names["b"], "(integer) 0")
	g.wantNothingLeft()
}

// TestElementOfAFencedNode: while the owner of the second key is fenced, the element stays where it is.
func TestElementOfAFencedNode(t *testing.T) {
	g := startCrossRig(t)
	g.clients[1].want("RPUSH "+g.names["b"]+" one", "(integer) 1")
	h := holdPartition(g.nodes[0], g.names["D"])
	g.pipes[0].send("DUNLIN GATHER " + g.words("LMOVE b D LEFT LEFT", false))
	eventually(t, "it has begun", func() bool { return len(g.nodes[0].gathers.places) == 1 })
	g.nodes[0].fenced.Store(true)
	h.End()
	retries := func() uint64 {
		s, err := g.nodes[0].Stats()
		if err != nil {
			t.Fatal(err)
		}
		return s.Retries
	}
	begun := retries()
	eventually(t, "it has tried again and again", func() bool { return retries() >= begun+3 })
	if holds := g.nodes[0].engine.Holds(); len(holds) > 0 || len(g.nodes[0].gathers.places) != 1 {
		t.Errorf("a fenced node has %d holds, and executes %d commands", len(holds), len(g.nodes[0].gathers.places))
	}
	g.clients[1].want("LLEN "+g.names["b"], "(integer) 1") // nobody holds it for long
	g.nodes[0].fenced.Store(false)
	if got := g.pipes[0].completed(); got != `"one"` {
		t.Errorf("LMOVE answers %s", got)
	}
	g.clients[1].want("LLEN "+g.names["b"], "(integer) 0")
	g.wantNothingLeft()
}
