package node

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// TestSlowLog: with a threshold of 0 the log has every command, in the words of its client; passwords never.
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

// TestTimedCommands: with the usual threshold it is the heavy ones, and those with many arguments.
func TestTimedCommands(t *testing.T) {
	f := func(id command.ID, want bool) {
		t.Helper()
		if got := plans[id].heavy; got != want {
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
	l := n.session.SlowLog()
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
