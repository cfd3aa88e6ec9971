package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// TestNewKeys: MSETNX stores all keys, of several partitions of each node, or none.
func TestNewKeys(t *testing.T) {
	g := startCrossRig(t)
	for _, f := range []struct{ line, want string }{
		{"MSETNX A 1 b 2 C 3 d 4 A 5", "(integer) 1"}, {"MSETNX E 1 b 2 f 3", "(integer) 0"}, {"MSETNX E 1 f 2", "(integer) 1"},
		{"MSETNX E 1 f", "(error) ERR wrong number of arguments for 'msetnx' command"},
	} {
		if got := g.gather(0, f.line); got != f.want {
			t.Errorf("%.40s answers %s, want %s", f.line, got, f.want)
		}
	}
	for name, want := range map[string]string{"A": `"5"`, "b": `"2"`, "C": `"3"`, "d": `"4"`, "E": `"1"`, "f": `"2"`, "G": "(nil)", "h": "(nil)"} {
		g.clients[g.at(name)].want("GET "+g.names[name], want)
	}
	long := func(size, pairs int) string {
		args := [][]byte{[]byte("DUNLIN"), []byte("GATHER"), []byte("MSETNX")}
		for i := range pairs {
			args = append(args, []byte(g.names[[]string{"G", "h"}[i%2]]), bytes.Repeat([]byte("x"), size))
		}
		g.pipes[0].sendArgs(args...)
		return g.pipes[0].completed()
	}
	if got := long(maxElement+1, 2); got != "(error) "+errLongNew {
		t.Errorf("with too long values it answers %s", got)
	}
	if got := long(maxElement, 16); got != "(error) "+errLongNew {
		t.Errorf("with too many values it answers %s", got)
	}
	if got := long(maxElement, 14); got != "(integer) 1" {
		t.Errorf("with long values it answers %s", got)
	}
	g.clients[1].want("STRLEN "+g.names["h"], fmt.Sprintf("(integer) %d", maxElement))
	g.wantNothingLeft()
}

// TestNewKeysAtOnce: of many MSETNX with keys in common, in any order, one succeeds, and nobody sees a part of it.
func TestNewKeysAtOnce(t *testing.T) {
	g := startCrossRig(t)
	for round := range 10 {
		g.pipes[0].send("DUNLIN GATHER " + g.words("MSETNX A zero b zero C zero d zero", false))
		g.pipes[1].send("DUNLIN GATHER " + g.words("MSETNX d one C one b one A one", false))
		if a, b := g.pipes[0].completed(), g.pipes[1].completed(); a+b != "(integer) 0(integer) 1" && a+b != "(integer) 1(integer) 0" {
			t.Errorf("round %d: they answer %s and %s", round, a, b)
		}
		value := g.clients[0].do("GET " + g.names["A"])
		for _, name := range []string{"b", "C", "d"} {
			g.clients[g.at(name)].want("GET "+g.names[name], value)
		}
		for _, name := range []string{"A", "b", "C", "d"} {
			g.clients[g.at(name)].want("DEL "+g.names[name], "(integer) 1")
		}
	}
	g.wantNothingLeft()
}

// TestNewKeysAreUndone: what MSETNX has stored in a partition is deleted if the partition is not
// released, and nobody is told of it.
func TestNewKeysAreUndone(t *testing.T) {
	bothReserve(t, func(t *testing.T, g *reserveRig) {
		g.reserve("EXISTS {k}1 {k}2", ":0")
		g.reserve("EXISTS {l}", ":0")
		g.within(member.GoesOn, "MSETNX {k}1 a {k}2 b", ":1")
		g.within(member.GoesOn, "MSETNX {l} a", ":1")
		if n := g.node.lists.Load(); n < int64(len("{k}1{k}2{l}")) {
			t.Errorf("what would undo that is charged as %d bytes", n)
		}
		g.at.end(false)
		g.holds(0)
		eventually(t, "nothing is charged", func() bool { return g.node.lists.Load() == 0 })
		g.c.want("EXISTS {k}1 {k}2", "(integer) 0")
		g.open()
		g.reserve("EXISTS {k}1", ":0")
		g.within(member.GoesOn, "MSETNX {k}1 a", ":1")
		g.c.want("EXISTS {k}1", "(integer) 0") // it waits until that lapses
		if n, err := g.at.Release(); n != 0 || err != nil {
			t.Errorf("%d are released, %v", n, err)
		}
		g.at.end(true)
		g.open()
		g.reserve("EXISTS {k}1", ":0")
		g.within(member.GoesOn, "MSETNX {k}1 a", ":1")
		g.node.fenced.Store(true)
		if n, err := g.at.Release(); n != 0 || err != nil {
			t.Errorf("%d are released, %v", n, err)
		}
		g.node.fenced.Store(false)
		g.c.want("EXISTS {k}1", "(integer) 0")
		g.reserve("EXISTS {k}1", ":0")
		g.within(member.GoesOn, "MSETNX {k}1 a", ":1")
		if n, err := g.at.Release(); n != 1 || err != nil {
			t.Errorf("%d are released, %v", n, err)
		}
		g.c.want("GET {k}1", `"a"`)
	})
}

// TestNewKeysWhoseOwnerFails: if an owner fails before anything is released, nothing is stored, or
// all is when it answers again. Behind that, the reply says that it is unknown.
func TestNewKeysWhoseOwnerFails(t *testing.T) {
	for _, f := range []struct {
		replies []string
		asked   string
		want    string
		stored  string
	}{
		{[]string{":0\r\n", ":1\r\n", ":1\r\n"}, "RESERVE WITHIN RELEASE", "(integer) 1", "(integer) 1"},
		{[]string{":1\r\n", ":1\r\n"}, "RESERVE RELEASE", "(integer) 0", "(integer) 0"},
		{[]string{":0\r\n", "-OOM none\r\n"}, "RESERVE WITHIN", "(error) OOM none", "(integer) 0"},
		{[]string{":0\r\n", "", ":0\r\n", ":1\r\n", ":1\r\n"}, "RESERVE WITHIN RESERVE WITHIN RELEASE", "(integer) 1", "(integer) 1"},
		{[]string{":0\r\n", "-DUNLINLAPSED\r\n", ":1\r\n", ":1\r\n"}, "RESERVE WITHIN RESERVE RELEASE", "(integer) 0", "(integer) 0"},
		{[]string{":0\r\n", ":1\r\n", ""}, "RESERVE WITHIN RELEASE", "(error) " + string(errSomeNew), "(integer) 1"},
	} {
		g := startCrossRig(t)
		s := &fakeReplies{replies: f.replies}
		g.fakeOwner("b", s.answer)
		if got := g.gather(0, "MSETNX D 1 b 2"); got != f.want {
			t.Errorf("with %q it answers %s, want %s", f.replies, got, f.want)
		}
		s.mu.Lock()
		if asked := strings.Join(s.asked, " "); asked != f.asked {
			t.Errorf("with %q it asks %s, want %s", f.replies, asked, f.asked)
		}
		s.mu.Unlock()
		g.clients[0].want("EXISTS "+g.names["D"], f.stored)
		g.wantNothingLeft()
	}
}
