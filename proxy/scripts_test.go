package proxy

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// counting is a Budget of so many bytes.
type counting struct{ left int64 }

func (c *counting) Charge(n int64) bool {
	if c.left < n {
		return false
	}
	c.left -= n
	return true
}

func (c *counting) Refund(n int64) { c.left += n }

// TestScriptsAreBounded: a proxy keeps the bodies that were used last, within its memory.
func TestScriptsAreBounded(t *testing.T) {
	const room = 100 << 10
	budget := &counting{left: room}
	s := scripts{budget: budget}
	text := func(i int) []byte { return []byte(fmt.Sprintf("return %d -- %s", i, strings.Repeat("x", 9<<10))) }
	check := func(least, most int) {
		t.Helper()
		count := s.sent.order.Len() + s.loaded.order.Len()
		if len(s.bodies) != count || count < least || count > most || s.sent.size+s.loaded.size+budget.left != room {
			t.Errorf("%d bodies of %d take %d and %d bytes, %d are left", count, len(s.bodies), s.sent.size, s.loaded.size, budget.left)
		}
	}
	for i := range 50 {
		s.keep(text(i), false)
		s.keep(text(0), false)
	}
	check(10, 11)
	if !s.has(nameOf(text(0))) {
		t.Error("what was just used is forgotten")
	}
	s.keep(make([]byte, room), true)
	check(0, 0)
	s.keep([]byte("return 1"), false)
	if got, ok := s.get([]byte("E0e1f9fabfc9d4800c877a703b823ac0578ff8db")); !ok || got != "return 1" {
		t.Errorf("got %q", got)
	}
	if _, ok := s.get([]byte("e0e1")); ok || s.has([]byte("e0e1")) {
		t.Error("half a name is known")
	}
	s.flush()
	check(0, 0)
}

// nameOf returns the name by which clients know a script.
func nameOf(text []byte) []byte {
	name := sha1.Sum(text)
	return []byte(hex.EncodeToString(name[:]))
}

// TestLoadedScriptsStay: bodies of EVAL make a proxy forget none of SCRIPT LOAD, neither when there is no memory nor
// when there are very many.
func TestLoadedScriptsStay(t *testing.T) {
	text := func(i int) []byte {
		return []byte(fmt.Sprintf("return %d -- %s", i, strings.Repeat("x", maxSentBody-30)))
	}
	for _, budget := range []*counting{{left: 5 * maxSentBody}, {left: 1 << 40}} {
		s, all := scripts{budget: budget}, budget.left
		s.keep(text(0), false)
		s.keep(text(0), true) // it was known by EVAL
		s.keep(text(1), true)
		for i := range maxLoaded / maxSentBody {
			s.keep(text(10+i), false)
		}
		if !s.has(nameOf(text(0))) || !s.has(nameOf(text(1))) || s.loaded.order.Len() != 2 {
			t.Error("a loaded script is forgotten")
		}
		if s.sent.size > maxSent || s.sent.order.Len() < 2 {
			t.Errorf("%d bodies of EVAL take %d bytes", s.sent.order.Len(), s.sent.size)
		}
		for i := range 2 * maxLoaded / maxSentBody {
			s.keep(text(2000+i), true)
		}
		if s.loaded.size > maxLoaded || s.has(nameOf(text(0))) {
			t.Errorf("loaded bodies take %d bytes", s.loaded.size)
		}
		if s.flush(); budget.left != all || len(s.bodies) != 0 {
			t.Errorf("%d bytes of %d are left", budget.left, all)
		}
	}
}

// TestLookingForScripts: SCRIPT EXISTS copies no body, and is no use of it.
func TestLookingForScripts(t *testing.T) {
	var s scripts
	long := make([]byte, 1<<20)
	s.keep(long, true)
	s.keep([]byte("return 1"), true)
	name := nameOf(long)
	if n := testing.AllocsPerRun(10, func() { s.has(name) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if last := s.loaded.order.Back().Value.(*body); !s.has(name) || len(last.text) != len(long) {
		t.Error("SCRIPT EXISTS counts as a use")
	}
}

// TestScriptsAtOnce: a session has few scripts on their way, in transactions or not, so that it does not fill a pipe
// that others share.
func TestScriptsAtOnce(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	c.level = ring.ScriptsLevel
	c.route(func(int) int { return 0 })
	n := c.nodes[0]
	n.set(func(n *fakeNode) {
		n.later = func(args []string) bool { return args[0] == "EVAL" || len(args) > 4 && args[1] == "EXEC" }
	})
	cl, other := c.dial(), c.dial()
	for range 40 { // the session learns that replies are small
		cl.send("GET a")
		cl.want("$-1")
	}
	const scripts = 3 * scriptsAtOnce
	for _, inMulti := range []bool{false, true} {
		var lines []string
		for i := range scripts {
			script := fmt.Sprintf("EVAL x 1 key:%d", i) // each of another partition
			if inMulti {
				lines = append(lines, "MULTI", script, "EXEC")
			} else {
				lines = append(lines, script)
			}
		}
		cl.send(append(lines, "GET a")...)
		n.waiting(scriptsAtOnce)
		for done := range scripts {
			other.send("GET b") // behind all that was sent
			other.want("$-1")
			n.waiting(min(scriptsAtOnce, scripts-done))
			n.complete(0, ":1\r\n")
			if inMulti {
				cl.want("+OK", "+QUEUED")
			}
			cl.want(":1")
		}
		cl.want("$-1")
	}
}

// TestScriptsOfGoneClients: a client that closes its connection while a script takes long ends it. One that has only
// finished sending gets the replies of short ones.
func TestScriptsOfGoneClients(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	c.level = ring.ScriptsLevel
	c.route(func(int) int { return 0 })
	n := c.nodes[0]
	n.set(func(n *fakeNode) { n.later = func(args []string) bool { return args[0] == "EVAL" } })
	cl := c.dial()
	cl.send("EVAL x 1 key:0", "EVAL x 1 key:1")
	n.waiting(2)
	if err := cl.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	n.complete(0, ":1\r\n")
	cl.want(":1")
	n.complete(0, ":2\r\n")
	cl.want(":2")

	cl = c.dial()
	cl.send("EVAL x 1 key:0")
	n.waiting(1)
	cl.Conn.Close()
	n.told("CANCEL 3")
}

// TestScriptsBelowTheirLevel: a script that cannot be queued fails its transaction.
func TestScriptsBelowTheirLevel(t *testing.T) {
	c := newCluster(t, 1)
	cl := c.dial()
	refused := strings.TrimSpace(string(errScripts))
	cl.send("MULTI", "SET a 1", "EVAL x 0", "EXEC", "GET a", "EVAL x 0")
	cl.want("+OK", "+QUEUED", refused)
	if got := cl.reply(); !strings.HasPrefix(got, "-EXECABORT") {
		t.Errorf("EXEC answers %q", got)
	}
	cl.want("$-1", refused)
}

// TestScriptsWithoutKeys: they go to all nodes in turns. One that takes long keeps neither others nor the keys of
// some partition from their nodes.
func TestScriptsWithoutKeys(t *testing.T) {
	const nodes = 2
	c := newCluster(t, nodes, func(cfg *Config) { cfg.Patience = time.Hour }, oneLoop(t))
	c.level = ring.ScriptsLevel
	c.route(func(p int) int { return p % nodes })
	slow := c.dial()
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.later = func(args []string) bool { return args[0] == "EVAL" && args[1] == "slow" }
			n.answer = func(args []string) (string, bool) { return ":" + n.name[1:] + "\r\n", args[0] == "EVAL" }
		})
	}
	slow.send("GET "+key(0, nodes), "GET "+key(1, nodes)) // opens the pipes
	slow.want("$-1", "$-1")
	slow.send("EVAL slow 0", "EVAL slow 0")
	for _, n := range c.nodes {
		n.waiting(1)
	}
	other := c.dial()
	// The partition of a command's name is none of them.
	other.send("SET EVAL 1", "GET EVAL", "EVAL fast 0", "EVAL fast 0", "GET EVAL")
	other.want("+OK", "$1 1")
	if a, b := other.reply(), other.reply(); a+b != ":1:2" && a+b != ":2:1" {
		t.Errorf("two nodes answer %q, %q", a, b)
	}
	other.want("$1 1")
	for _, n := range c.nodes {
		n.complete(0, ":7\r\n")
	}
	slow.want(":7", ":7")
}
