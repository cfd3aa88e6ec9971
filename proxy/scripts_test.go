package proxy

import (
	"fmt"
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
	for i := range 50 {
		s.keep(text(i))
		s.keep(text(0))
	}
	if len(s.bySHA) != len(s.byBody) || s.order.Len() != len(s.bySHA) || s.order.Len() > 11 || s.size+budget.left != room {
		t.Errorf("%d bodies take %d bytes, %d are left", s.order.Len(), s.size, budget.left)
	}
	if _, ok := s.byBody[string(text(0))]; !ok {
		t.Error("what was just used is forgotten")
	}
	s.keep(make([]byte, maxNamed+1))
	s.flush()
	if s.order.Len() != 0 || budget.left != room {
		t.Errorf("behind flush %d bodies are kept, and %d bytes left", s.order.Len(), budget.left)
	}
	s.keep([]byte("return 1"))
	if got, ok := s.get(nil, []byte("E0e1f9fabfc9d4800c877a703b823ac0578ff8db")); !ok || string(got) != "return 1" {
		t.Errorf("got %q", got)
	}
	if _, ok := s.get(nil, []byte("e0e1")); ok {
		t.Error("half a name is known")
	}
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
