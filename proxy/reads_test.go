package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// readCluster is claimCluster for nodes at which reads of streams are answered later.
func readCluster(t *testing.T, nodes int) (*rig, []string) {
	c, keys := claimCluster(t, nodes)
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.later = func(args []string) bool { return args[0] == "DUNLIN" || args[0][0] == 'X' }
		})
	}
	return c, keys
}

// dialReader returns a client whose pipes to the nodes of the keys are open.
func (c *rig) dialReader(keys []string) *conn {
	cl := c.dial()
	for _, k := range keys {
		cl.send("GET " + k)
		cl.want("$-1")
	}
	return cl
}

// oneOf is a stream with one entry, as nodes answer it in RESP2.
func oneOf(key, id string) string {
	return "*2\r\n" + bulk(key) + "*1\r\n*2\r\n" + bulk(id) + "*2\r\n" + bulk("f") + bulk("v")
}

// shown is what a client reads of that.
func shown(streams ...string) string {
	return strings.TrimSpace(fmt.Sprintf("*%d ", len(streams)) + strings.ReplaceAll(strings.Join(streams, ""), "\r\n", " "))
}

// TestReads: each slot has a part, and the reply has the order of the keys.
func TestReads(t *testing.T) {
	c, k := readCluster(t, 2)
	a, b, cl := c.nodes[0], c.nodes[1], c.dialReader(k)
	cl.send(fmt.Sprintf("XREAD COUNT 5 STREAMS %s %s %s %s 0 1 2 3", k[1], k[0], k[1], k[0]))
	a.newestWants(1, fmt.Sprintf("XREAD COUNT 5 STREAMS %s %s 1 3", k[0], k[0]))
	b.newestWants(1, fmt.Sprintf("XREAD COUNT 5 STREAMS %s %s 0 2", k[1], k[1]))
	b.complete(0, "*2\r\n"+oneOf(k[1], "1-0")+oneOf(k[1], "3-0"))
	a.complete(0, "*1\r\n"+oneOf(k[0], "4-0"))
	cl.want(shown(oneOf(k[1], "1-0"), oneOf(k[0], "4-0"), oneOf(k[1], "3-0")))
	cl.send("XREAD STREAMS " + k[1] + " " + k[0] + " 0 0")
	a.waiting(1)
	a.complete(0, "*-1\r\n")
	b.waiting(1)
	b.complete(0, "*-1\r\n")
	cl.want("*-1")
}

// TestReadsFail: the client has the error of a part, whatever the others have.
func TestReadsFail(t *testing.T) {
	c, k := readCluster(t, 2)
	a, b, cl := c.nodes[0], c.nodes[1], c.dialReader(k)
	for _, reply := range []string{"-NOGROUP none\r\n", "-WRONGTYPE none\r\n"} {
		cl.send("XREADGROUP GROUP g c NOACK CLAIM 5 STREAMS " + k[0] + " " + k[1] + " > >")
		a.newestWants(1, "XREADGROUP GROUP g c CLAIM 5 NOACK STREAMS "+k[0]+" >")
		a.complete(0, "*1\r\n"+oneOf(k[0], "1-0"))
		b.waiting(1)
		b.complete(0, reply)
		cl.want(strings.TrimSpace(reply))
	}
	cl.send("XREAD STREAMS " + k[0] + " " + k[1] + " 0 0")
	a.waiting(1)
	a.complete(0, "*1\r\n"+oneOf(k[1], "1-0")) // which was not asked for
	b.waiting(1)
	b.complete(0, "*-1\r\n")
	cl.want(strings.TrimSpace(string(errMerge)))
}

// TestReadsWait: what is ready is read, behind the IDs that the command has meant from the beginning.
func TestReadsWait(t *testing.T) {
	c, k := readCluster(t, 2)
	a, b, cl := c.nodes[0], c.nodes[1], c.dial()
	a.set(func(n *fakeNode) { n.settles = "7-0" })
	cl.send(fmt.Sprintf("XREAD BLOCK 0 COUNT 2 STREAMS %s %s $ 5", k[0], k[1]), "GET x")
	a.newestWants(1, "DUNLIN CLAIM s "+k[0]+" $")
	b.newestWants(1, "DUNLIN CLAIM s "+k[1]+" 5")
	b.complete(0, "*2\r\n:0\r\n:0\r\n")
	b.newestWants(1, "XREAD COUNT 2 STREAMS "+k[1]+" 5")
	b.complete(0, "*-1\r\n") // it was deleted meanwhile
	b.newestWants(1, "DUNLIN CLAIM s "+k[1]+" 5")
	a.complete(0, "*2\r\n:0\r\n:0\r\n")
	a.newestWants(1, "XREAD COUNT 2 STREAMS "+k[0]+" 7-0")
	a.complete(0, "*1\r\n"+oneOf(k[0], "8-0"))
	cl.want(shown(oneOf(k[0], "8-0")), "$-1")
	b.told("CANCEL 3")
}

// TestReadsWaitFromTheBeginning: what $ is comes with READY if another key is ready at once, and a claim that is made
// again has it.
func TestReadsWaitFromTheBeginning(t *testing.T) {
	c, k := readCluster(t, 2)
	a, b, cl := c.nodes[0], c.nodes[1], c.dial()
	for i, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.later = func(args []string) bool { return !slices.Contains(args, "$") }
			n.answer = func([]string) (string, bool) { return fmt.Sprintf("*3\r\n:0\r\n:0\r\n$3\r\n%d-1\r\n", 8+i), true }
		})
	}
	cl.send(fmt.Sprintf("XREAD BLOCK 0 STREAMS %s %s $ $", k[0], k[1]))
	b.newestWants(1, "XREAD STREAMS "+k[1]+" 9-1") // both are ready
	b.complete(0, "*-1\r\n")
	a.newestWants(1, "XREAD STREAMS "+k[0]+" 8-1")
	a.complete(0, "*-1\r\n")
	b.newestWants(1, "DUNLIN CLAIM s "+k[1]+" 9-1")
	a.newestWants(1, "DUNLIN CLAIM s "+k[0]+" 8-1")
	a.complete(0, "-DUNLINWAIT 1\r\n")
	a.newestWants(1, "DUNLIN CLAIM s "+k[0]+" 8-1")
	b.cut()
	b.set(func(n *fakeNode) { n.pending = nil })
	b.newestWants(1, "DUNLIN CLAIM s "+k[1]+" 9-1")
}

// TestGroupsWait: a claim for a group names it, and its turn ends behind the read.
func TestGroupsWait(t *testing.T) {
	c, k := readCluster(t, 2)
	a, b, cl := c.nodes[0], c.nodes[1], c.dial()
	cl.send(fmt.Sprintf("XREADGROUP GROUP g c BLOCK 0 CLAIM 50 STREAMS %s %s > >", k[0], k[1]))
	a.newestWants(1, "DUNLIN CLAIM g g 50 "+k[0])
	b.newestWants(1, "DUNLIN CLAIM g g 50 "+k[1])
	b.complete(0, "*2\r\n:0\r\n:5\r\n")
	b.newestWants(1, "XREADGROUP GROUP g c CLAIM 50 STREAMS "+k[1]+" >")
	b.told("PASS g 5 " + k[1] + " g")
	b.complete(0, "*1\r\n"+oneOf(k[1], "6-0"))
	cl.want(shown(oneOf(k[1], "6-0")))
	a.told("CANCEL 1")

	cl.send(fmt.Sprintf("XREADGROUP GROUP g c BLOCK 0 STREAMS %s %s > 0", k[0], k[1])) // which does not wait
	b.newestWants(1, "XREADGROUP GROUP g c STREAMS "+k[1]+" 0")
}

// TestReadsInRESP3: the reply is a map.
func TestReadsInRESP3(t *testing.T) {
	s := &scattered{s: &client{}, args: [][]byte{[]byte("XREAD"), []byte("STREAMS"), []byte("a"), []byte("b"), []byte("0"), []byte("0")}}
	s.reads = command.ReadsOf(s.args)
	s.partOf = []int{1, 0}
	for _, f := range []struct {
		version resp.Version
		replies [2]string
		want    string
	}{
		{resp.RESP3, [2]string{"%1\r\n$1\r\nb\r\n*0\r\n", "%1\r\n$1\r\na\r\n*1\r\n:1\r\n"}, "%2\r\n$1\r\na\r\n*1\r\n:1\r\n$1\r\nb\r\n*0\r\n"},
		{resp.RESP3, [2]string{"_\r\n", "%1\r\n$1\r\na\r\n*1\r\n:1\r\n"}, "%1\r\n$1\r\na\r\n*1\r\n:1\r\n"},
		{resp.RESP3, [2]string{"_\r\n", "_\r\n"}, "_\r\n"},
		{resp.RESP2, [2]string{"*-1\r\n", "*1\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n"}, "*1\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n"},
		{resp.RESP2, [2]string{"*1\r\n*2\r\n$1\r\na\r\n*0\r\n", "*-1\r\n"}, string(errMerge)},
		{resp.RESP2, [2]string{"*1\r\n*1\r\n$1\r\nb\r\n", "*-1\r\n"}, string(errMerge)},
		{resp.RESP2, [2]string{"+OK\r\n", "*-1\r\n"}, string(errMerge)},
		{resp.RESP2, [2]string{"*1\r\n*2\r\n$1\r\nb\r\n*0\r\n", "-ERR a\r\n"}, "-ERR a\r\n"},
	} {
		s.s.state = &session.State{Version: f.version}
		s.replies = [][]byte{[]byte(f.replies[0]), []byte(f.replies[1])}
		if got := string(s.merge(nil)); got != f.want {
			t.Errorf("%q: %q, want %q", f.replies, got, f.want)
		}
	}
}

// TestReadLimit: a command that its node would refuse does not wait for anything.
func TestReadLimit(t *testing.T) {
	for line, want := range map[string][2]bool{
		"XREAD BLOCK 5 STREAMS a b 0 0":                              {true, true},
		"XREAD BLOCK -5 STREAMS a b 0 0":                             {false, false},
		"XREAD BLOCK x STREAMS a b 0 0":                              {false, false},
		"XREAD BLOCK 5 STREAMS a b 0":                                {false, false},
		"XREAD BLOCK 5 COUNT x STREAMS a b 0 0":                      {false, false},
		"XREAD BLOCK 5 NOACK STREAMS a b 0 0":                        {false, false},
		"XREAD BLOCK 5 GROUP g c STREAMS a b 0 0":                    {false, false},
		"XREAD BLOCK 5 CLAIM 1 STREAMS a b 0 0":                      {false, false},
		"XREADGROUP BLOCK 5 STREAMS a b > >":                         {false, false},
		"XREADGROUP GROUP g c BLOCK 5 COUNT -1 STREAMS a b > >":      {true, true},
		"XREADGROUP GROUP g c BLOCK 5 CLAIM -1 STREAMS a b > >":      {false, false},
		"XREADGROUP GROUP g c BLOCK 5 STREAMS a b > 0":               {false, true},
		"XREADGROUP GROUP g c BLOCK 5 NOACK CLAIM 0 STREAMS a b > >": {true, true},
	} {
		var args [][]byte
		for _, w := range strings.Fields(line) {
			args = append(args, []byte(w))
		}
		if _, waits, valid := readLimit(command.Row(args), args); waits != want[0] || valid != want[1] {
			t.Errorf("%s: waits %v, valid %v", line, waits, valid)
		}
	}
	if ring.StreamsLevel > ring.Level {
		t.Error("streams are of a level that this build does not speak")
	}
}
