package node

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// TestSlowLog: with a threshold of 0 the log has every command, in the words of its client;
// passwords never.
func TestSlowLog(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("CLIENT SETNAME bob", "OK")
	c.want("CONFIG SET slowlog-log-slower-than 0", "OK")
	c.want("SLOWLOG RESET", "OK")
	c.want("SET k v", "OK")
	c.want("KEYS *", "1) \"k\"") // a goroutine's
	c.want("PING", "PONG")
	c.do("AUTH default secret")
	c.do("HELLO 2 AUTH default secret")
	c.want("FLUSHALL", "OK")
	log := c.do("SLOWLOG GET -1")
	for _, want := range []string{`"SET"`, `"KEYS"`, `"PING"`, `"FLUSHALL"`, `"bob"`} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is not in the slow log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "secret") {
		t.Errorf("a password is in the slow log:\n%s", log)
	}
	c.want("CONFIG SET slowlog-log-slower-than 3600000000", "OK")
	c.want("SLOWLOG RESET", "OK")
	c.want("SET k v", "OK")
	c.want("KEYS *", "1) \"k\"")
	c.want("SLOWLOG LEN", "(integer) 0")
}

// TestSlowLogOfLongElements: the log does not read a string that a value has taken over, whose memory
// may be another one's by then.
func TestSlowLogOfLongElements(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory = 64 << 20 })
	c := dial(t, n.Addr())
	c.want("CONFIG SET slowlog-log-slower-than 0", "OK")
	long := bigValue(100_000, 1)
	c.wantBig("HSET h f BIG", long, "(integer) 1")
	c.wantBig("RPUSH l BIG", long, "(integer) 1")
	c.wantBig("LSET l 0 BIG", long, "OK")
	log := c.do("SLOWLOG GET -1")
	if strings.Contains(log, "more bytes") || strings.Count(log, `"RPUSH"`) != 1 {
		t.Errorf("the slow log has %s", log)
	}
}

// TestTimedCommands: with the usual threshold it is the heavy ones, and those with many arguments.
func TestTimedCommands(t *testing.T) {
	f := func(id command.ID, want bool) {
		t.Helper()
		if got := plans[id].timed; got != want {
			t.Errorf("%s is timed: %v", command.ByID(id).Name, got)
		}
	}
	f(command.Get, false)
	f(command.Set, false)
	f(command.Incr, false)
	f(command.MGet, false)
	f(command.Del, false)
	f(command.Keys, true)
	f(command.Scan, true)
	n := startNode(t)
	l := &n.slow
	if got := timedFrom(l); got != manyArgs {
		t.Errorf("commands are timed from %d arguments", got)
	}
	c := dial(t, n.Addr())
	c.want("CONFIG SET slowlog-log-slower-than 999", "OK")
	if got := timedFrom(l); got != 0 {
		t.Errorf("with a fine threshold, commands are timed from %d arguments", got)
	}
	c.want("CONFIG SET slowlog-log-slower-than -1", "OK")
	if got := timedFrom(l); got < 1<<30 {
		t.Errorf("without a slow log, commands are timed from %d arguments", got)
	}
}

// TestMonitor: who watches sees the commands of all loops, in the order of each connection, until
// RESET.
func TestMonitor(t *testing.T) {
	n := startNode(t)
	var clients []*client
	for range 4 { // on two loops
		clients = append(clients, dial(t, n.Addr()))
	}
	m := dial(t, n.Addr())
	m.want("MONITOR", "OK")
	clients[3].want("CONFIG GET timeout", "1) \"timeout\"\n2) \"0\"") // not shown
	for i, c := range clients {
		c.want("SET k v", "OK")
		c.want("PING", "PONG")
		c.want("KEYS *", "1) \"k\"")
		c.want("AUTH default secret", "OK")
		for _, want := range []string{`"SET" "k" "v"`, `"PING"`, `"KEYS" "*"`, `"AUTH" "(redacted)" "(redacted)"`} {
			if got := m.next(); !strings.HasSuffix(got, "] "+want) {
				t.Fatalf("of client %d, MONITOR shows %s, want %s", i, got, want)
			}
		}
	}
	if got := m.do("GET k"); got != "(error) ERR Replica can't interact with the keyspace" {
		t.Errorf("GET of a monitor answers %s", got)
	}
	if got := clients[0].do("CLIENT LIST"); strings.Count(got, " flags=O ") != 1 {
		t.Errorf("CLIENT LIST shows no monitor:\n%s", got)
	}
	m.want("RESET", "RESET")
	clients[0].want("SET k w", "OK")
	m.want("GET k", "\"w\"") // and no line before it
	eventually(t, "nobody watches", func() bool {
		var watched atomic.Bool
		err := n.cfg.Group.Each(func(l *netloop.Loop) {
			if n.monitors.Feed(l).On() {
				watched.Store(true)
			}
		})
		return err == nil && !watched.Load()
	})
}
