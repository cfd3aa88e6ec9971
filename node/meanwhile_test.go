package node

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// TestPauseBesideARewrite: a command whose new value a goroutine makes is executed, whoever pauses
// its client meanwhile.
func TestPauseBesideARewrite(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	setLong(t, n, "k")
	free := occupy(t, n)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.sendLines("SETRANGE k 3000000 x", "PING")
	for range 20 { // the loop reads both: it has seen the request
		other.want("GET j", "(nil)")
	}
	other.want("CLIENT PAUSE 60000 WRITE", "OK")
	free()
	for _, want := range []string{"(integer) 3000001", "PONG"} {
		if got := c.next(); got != want {
			t.Errorf("the reply is %s, want %s", got, want)
		}
	}
}

// TestUnwantedReplyOfSlowTransaction: a client that wants no reply gets nothing of EXEC, however many
// slices that takes.
func TestUnwantedReplyOfSlowTransaction(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	for _, key := range []string{"{k}x", "{k}y"} {
		if err := put(n, key, strings.Repeat(key, 2800), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	held := n.engine.Stats().Holds
	c.sendLines("CLIENT REPLY OFF", "MULTI", "INCR {k}a")
	for range 10 {
		c.send("LCS {k}x {k}y LEN")
	}
	c.sendLines("INCR {k}b", "EXEC", "CLIENT REPLY ON", "GET {k}b")
	for _, want := range []string{"OK", `"1"`} {
		if got := c.next(); got != want {
			t.Errorf("behind EXEC: %.100s, want %s", got, want)
		}
	}
	if n.engine.Stats().Holds == held {
		t.Error("the transaction never held its partition")
	}
}

// TestRewriteMeetsAHold: a command whose new value a goroutine has made waits for those who hold its
// partition by then.
func TestRewriteMeetsAHold(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	large := bigValue(300_000, 1)
	for _, test := range []struct {
		name string
		send func(c *client)
		want string
	}{
		{"short", func(c *client) { c.send("SETRANGE {k} 3000000 x") }, "(integer) 3000001"},
		{"uploaded", func(c *client) { c.sendRaw(bigRequest(t, "SETRANGE {k} 3000000 BIG", large)) }, "(integer) 3300000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			setLong(t, n, "{k}")
			free := occupy(t, n)
			c, other := dial(t, n.Addr()), dial(t, n.Addr())
			test.send(c)
			c.send("PING")
			for range 20 {
				other.want("GET {j}", "(nil)")
			}
			release, held := holdLoops(t, n), make(chan *engine.Hold, 1)
			n.workers[0].loop.Post(func() { held <- holdPartition(n, "{k}") })
			free()
			occupy(t, n)() // the value is made
			for range 1000 {
				runtime.Gosched() // and the loop was told
			}
			release()
			h := <-held
			for range 20 {
				other.want("GET {j}", "(nil)")
			}
			h.End()
			for _, want := range []string{test.want, "PONG"} {
				if got := c.next(); got != want {
					t.Errorf("the reply is %.100s, want %s", got, want)
				}
			}
		})
	}
}

// TestListedCommandMeetsAHold: so does a command of so many keys that they are listed in turns.
func TestListedCommandMeetsAHold(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	keys := strings.Repeat(" {k}b", 3*listAtOnce)
	for _, line := range []string{"SUNION", "MGET", "WATCH", "DEL", "PFCOUNT", "SDIFFSTORE", "PFMERGE"} {
		t.Run(line, func(t *testing.T) {
			h := holdPartition(n, "{k}")
			c, other := dial(t, n.Addr()), dial(t, n.Addr())
			c.send(line + keys)
			c.send("PING")
			for range 40 {
				other.want("GET {j}", "(nil)")
			}
			h.End()
			first := c.next()
			if strings.Contains(first, "error") {
				t.Errorf("it answers %.100s", first)
			}
			if got := c.next(); got != "PONG" {
				t.Errorf("behind it: %.100s", got)
			}
		})
	}
}

// TestErrorsOfLateCommands: an error is counted for the command that answers it, whatever its loop has
// executed meanwhile.
func TestErrorsOfLateCommands(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("SET {k}string x", "OK")
	union := "SUNION {k}string"
	for i := range 100 {
		union += fmt.Sprintf(" {k}%d", i)
	}
	release := holdLoops(t, n)
	c.send(union)
	other.send("GET {j}")
	release()
	other.next()
	if got := c.next(); !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("SUNION answers %.100s", got)
	}
	for _, line := range strings.Split(c.do("INFO commandstats"), `\x0d\x0a`) {
		name, failed, _ := strings.Cut(line, ":")
		if want := strings.HasPrefix(name, "cmdstat_sunion"); strings.Contains(failed, "failed_calls=1") != want {
			t.Error(line)
		}
	}
}
