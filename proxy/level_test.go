package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// needing are commands that need a level.
var needing = []struct {
	lines []string
	level uint8
}{
	{[]string{"SUNIONSTORE d a b"}, ring.GatherLevel},
	{[]string{"SELECT 1"}, ring.DatabasesLevel},
	{[]string{"MULTI", "SELECT 1"}, ring.DatabasesLevel},
	{[]string{"XREAD STREAMS a b 0 0"}, ring.StreamsLevel},
	{[]string{"CLIENT TRACKING ON"}, ring.TrackingLevel},
	{[]string{"FCALL f 1 k"}, ring.FunctionsLevel},
	{[]string{"FUNCTION LIST"}, ring.FunctionsLevel},
	{[]string{"MULTI", "FCALL f 1 k"}, ring.FunctionsLevel},
	{[]string{"BLPOP a b 0.01"}, ring.ClaimLevel},
	{[]string{"EVAL x 1 k"}, ring.ScriptsLevel},
	{[]string{"SCRIPT EXISTS x"}, ring.ScriptsLevel},
	{[]string{"PUBLISH c m"}, ring.PubSubLevel},
	{[]string{"SUBSCRIBE c"}, ring.PubSubLevel},
	{[]string{"BLPOP k 0.01"}, ring.BlockingLevel},
}

// refusedForLevel reports whether a reply is about the level of the cluster.
func refusedForLevel(reply string) bool {
	return strings.Contains(reply, "protocol level") || strings.HasPrefix(reply, "-CROSSSLOT")
}

// levels is a proxy without a table, and a function that gives it one of a level.
func levels(t *testing.T, change ...func(*Config)) (c *rig, route func(level uint8)) {
	c = newCluster(t, 0, append(change, oneLoop(t), relaxedSlots)...)
	n := newFakeNode(t, "n1")
	n.set(func(n *fakeNode) {
		n.later = func([]string) bool { return false }
		n.answer = func([]string) (string, bool) { return "+node\r\n", true }
		n.listen = func([]string) member.Heard { return member.Noted }
	})
	return c, func(level uint8) {
		c.nodes, c.level = []*fakeNode{n}, level
		c.route(func(int) int { return 0 })
	}
}

// ask sends commands and returns the reply to the last of them.
func (c *conn) ask(lines []string) {
	c.t.Helper()
	for _, line := range lines[:len(lines)-1] {
		c.send(line)
		c.want("+OK")
	}
	c.send(lines[len(lines)-1])
}

// TestLevelIsWaitedFor: a proxy that has just started refuses nothing for lack of a level: it does not know the
// cluster's level before its first table.
func TestLevelIsWaitedFor(t *testing.T) {
	for _, f := range needing {
		c, route := levels(t, func(cfg *Config) { cfg.Patience = time.Minute })
		cl := c.dial()
		cl.ask(f.lines)
		eventually(t, "it waits for a table", func() bool { return tableless(c) })
		route(f.level)
		if got := cl.reply(); refusedForLevel(got) { // the fake node says something else
			t.Errorf("with a table of level %d, %q answers %q", f.level, f.lines, got)
		}
	}
}

// tableless reports whether a session of the only worker waits for a table.
func tableless(c *rig) (waits bool) {
	done := make(chan struct{})
	w := c.proxy.workers[0]
	w.loop.Post(func() {
		defer close(done)
		for _, s := range w.clients {
			waits = waits || s.tableless > 0
		}
	})
	<-done
	return waits
}

// TestLevelIsTooLow: such a command is refused once the level is known.
func TestLevelIsTooLow(t *testing.T) {
	for _, f := range needing {
		c, route := levels(t)
		cl := c.dial()
		cl.ask(f.lines)
		route(f.level - 1)
		if got := cl.reply(); !refusedForLevel(got) {
			t.Errorf("below level %d, %q answers %q", f.level, f.lines, got)
		}
		cl.ask(f.lines[len(f.lines)-1:])
		if got := cl.reply(); !refusedForLevel(got) {
			t.Errorf("below level %d, %q answers %q", f.level, f.lines, got)
		}
		if f.lines[0] == "MULTI" {
			cl.send("EXEC")
			cl.want("-EXECABORT Transaction discarded because of previous errors.")
		}
	}
}

// TestSelectBelowTheLevel: database 0 can always be selected, and what is no database is refused as such.
func TestSelectBelowTheLevel(t *testing.T) {
	c, route := levels(t)
	cl := c.dial()
	cl.send("SELECT 0", "SELECT 16", "MULTI", "SELECT 0", "SELECT 77", "PING", "EXEC")
	cl.want("+OK", "-ERR DB index is out of range", "+OK", "+QUEUED", "+QUEUED", "+QUEUED",
		"*3 +OK -ERR DB index is out of range +PONG")
	route(0)
	cl.send("SELECT 0", "SELECT 15", "GET k")
	cl.want("+OK", strings.TrimSpace(string(errDatabases)), "+node")
}

// TestTableIsWaitedForInVain: a command waits for the first table no longer than one that is parked.
func TestTableIsWaitedForInVain(t *testing.T) {
	c, route := levels(t, func(cfg *Config) { cfg.Patience = 50 * time.Millisecond })
	cl, gone := c.dial(), c.dial()
	eventually(t, "it waits", func() bool { // for so short that the test may look too late
		gone.send("SELECT 1")
		return tableless(c)
	})
	gone.Close()
	begun := time.Now()
	cl.send("SELECT 1", "SELECT 2", "PING")
	cl.want(strings.TrimSpace(string(errParkedLong)), strings.TrimSpace(string(errParkedLong)), "+PONG")
	if took := time.Since(begun); took < 100*time.Millisecond {
		t.Errorf("two commands waited for %v", took)
	}
	c.onLoop(func(w *worker) { w.proxy.cfg.Patience = time.Minute })
	cl.send("SELECT 1")
	eventually(t, "it waits", func() bool { return tableless(c) })
	route(ring.Level)
	cl.want("+OK")
}

// TestSettingsAreWaitedFor: nobody selects a database before the proxy has the settings that its table names: they say
// which databases are pinned.
func TestSettingsAreWaitedFor(t *testing.T) {
	s, err := (*ring.Settings)(nil).With(1, map[string]string{ring.PinnedSetting: "3"})
	if err != nil {
		t.Fatal(err)
	}
	c, route := levels(t, func(cfg *Config) { cfg.Patience = time.Minute })
	c.settings = s.ID()
	route(ring.Level)
	cl := c.dial()
	cl.send("SELECT 3", "GET k")
	eventually(t, "it waits", func() bool { return tableless(c) })
	c.proxy.ApplySettings(s)
	cl.want("+OK", "+node")
	if tableless(c) {
		t.Error("the next one would wait for less long")
	}
}
