package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// execArgs returns a DUNLIN EXEC of the lines, whose keys have the tag k.
func execArgs(t testing.TB, watched [][]byte, lines ...string) [][]byte {
	t.Helper()
	args := [][]byte{[]byte("DUNLIN"), []byte("EXEC"), fmt.Append(nil, ring.Slot([]byte("k"))), fmt.Append(nil, len(watched)/2)}
	args = append(args, watched...)
	for _, line := range lines {
		args = append(args, resp.AppendRequest(nil, words(t, line)...))
	}
	return args
}

// A pipe's slow transaction stops nothing but its partition: what was sent behind it is answered
// ahead of it, and others on its partition are refused until it is complete.
func TestTransactionLater(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	p := laterPipe(t, n, "common", 1)
	small := strings.Repeat("abcdefgh", 1400)
	if put(n, "{k}x", small, engine.TypeString) != nil || put(n, "{k}y", strings.Repeat("hgfedcba", 1400), engine.TypeString) != nil {
		t.Fatal("cannot store")
	}
	lines := []string{"INCR {k}a"}
	for range 20 {
		lines = append(lines, "LCS {k}x {k}y LEN")
	}
	lines = append(lines, "INCR {k}a")
	input := resp.AppendRequest(nil, execArgs(t, nil, lines...)...)
	input = append(input, "INCR {k}a\r\n"...)
	const others = 100
	for range others {
		input = append(input, "INCR {j}\r\n"...)
	}
	p.sendRaw(append(input, "DUNLIN RETRY 1\r\nINCR {k}a\r\n"...))
	p.frame("EXEC", "-DUNLINLATER 1")
	p.frame("INCR behind it", "-DUNLINWAIT 1")
	for i := range others {
		p.frame("INCR of another key", fmt.Sprintf(":%d", i+1))
	}
	p.frame("RETRY", "+OK")
	p.frame("INCR behind RETRY", "-DUNLINWAIT 1")
	if got := string(p.read()); !strings.HasPrefix(got, push(1, "*22\r\n:1\r\n")) || !strings.HasSuffix(got, ":2\r\n") {
		t.Errorf("EXEC answers %.100q", got)
	}
	p.raw("INCR {k}a", "-DUNLINWAIT 1")
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("INCR {k}a", ":3")
}

// Watched keys are looked at in several slices, and large replies wait for their proxy, whichever way
// a transaction is answered.
func TestLongTransactionsLater(t *testing.T) {
	n := startNode(t)
	setLong(t, n, "{k}long")
	p := laterPipe(t, n, "common", 1)
	var watched [][]byte
	for i := range 3 * watchedAtOnce {
		p.sendArgs([]byte("DUNLIN"), []byte("WATCH"), fmt.Append(nil, "{k}", i))
		version, _ := bulkAfter(p.read(), "*1\r\n")
		watched = append(watched, fmt.Append(nil, "{k}", i), version)
	}
	p.sendArgs(execArgs(t, watched, "INCR {k}new")...)
	p.frame("EXEC", "-DUNLINLATER 1")
	p.frame("EXEC", push(1, "*1\r\n:1"))
	p.raw(fmt.Sprintf("SET {k}%d changed", 3*watchedAtOnce-1), "+OK")
	p.sendArgs(execArgs(t, watched, "INCR {k}new")...)
	p.frame("EXEC", "-DUNLINLATER 2")
	p.frame("EXEC", push(2, "*-1"))
	p.raw("GET {k}new", "$1\r\n1")

	lines := []string{"GET {k}long"}
	for range 5000 {
		lines = append(lines, "GET {k}new")
	}
	p.sendArgs(execArgs(t, nil, lines...)...)
	p.frame("EXEC", "-DUNLINLATER 3")
	if got := string(p.read()); !strings.HasPrefix(got, push(3, "-DUNLINLARGE ")) {
		t.Errorf("EXEC answers %.100q", got)
	}
}

// What a transaction has begun is executed to its end, its messages included, when its connection has ended.
func TestTransactionPublishesBehindItsConnection(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	listener := dial(t, n.Addr())
	listener.do("SUBSCRIBE {k}c")
	p := dial(t, n.Addr())
	p.want(fmt.Sprintf("%s %d", pipeLine(1, 0, "common", 1, 2), ring.Level), "OK later")
	small := strings.Repeat("abcdefgh", 1400)
	if put(n, "{k}x", small, engine.TypeString) != nil || put(n, "{k}y", strings.Repeat("hgfedcba", 1400), engine.TypeString) != nil {
		t.Fatal("cannot store")
	}
	lines := append([]string{"INCR {k}a"}, slices.Repeat([]string{"LCS {k}x {k}y LEN"}, 20)...)
	p.sendArgs(execArgs(t, nil, append(lines, "PUBLISH {k}c m")...)...)
	p.frame("EXEC", "-DUNLINLATER 1")
	p.conn.Close()
	if got, want := string(listener.read()), "*3\r\n$7\r\nmessage\r\n$4\r\n{k}c\r\n$1\r\nm\r\n"; got != want {
		t.Errorf("the subscriber gets %q, want %q", got, want)
	}
}

// A goroutine's work for a command of a transaction ends with the connection, if the command only reads, although
// the transaction has changed something before.
func TestReadsOfTransactionsEnd(t *testing.T) {
	n := startNode(t)
	onLoop(t, n, func(cn *conn) {
		cn.context()
		cn.jobs.cancel()
		for line, goesOn := range map[string]bool{
			"DUMP k": false, "EVAL_RO s 0": false, "SORT k STORE d": true, "EVAL s 0": true,
			"SORT k BY STORE GET #": false, "GEORADIUS k 1 2 3 m": false, "GEORADIUS k 1 2 3 m STOREDIST d": true,
		} {
			args := words(t, line)
			x := &transaction{wrote: true, must: mustRun(command.Row(args), args)}
			if got := x.workContext(cn).Err() == nil; got != goesOn {
				t.Errorf("work for %s goes on: %v, want %v", line, got, goesOn)
			}
		}
	})
}
