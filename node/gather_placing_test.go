package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// settings has both nodes apply a document that makes changes.
func (g *crossRig) settings(changes map[string]string) {
	g.t.Helper()
	s, err := g.nodes[0].placing.Load().document.With(1, changes)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, n := range g.nodes {
		n.ApplySettings(s)
	}
}

// sendOf sends a command whose keys lie in several slots of a database to a node.
func (g *crossRig) sendOf(database uint8, home int, line string) {
	p := g.pipes[home]
	p.sendRaw(p.of(database, "DUNLIN GATHER "+g.words(line, false)))
}

// gatherOf is gather for keys of a database.
func (g *crossRig) gatherOf(database uint8, home int, line string) string {
	g.t.Helper()
	g.sendOf(database, home, line)
	return g.pipes[home].completed()
}

// wantKeys checks how many keys both nodes have in all databases.
func (g *crossRig) wantKeys(want int) {
	g.t.Helper()
	keys := 0
	for _, n := range g.nodes {
		for p := range uint16(ring.Partitions) {
			keys += n.engine.Count(p)
		}
	}
	if keys != want {
		g.t.Errorf("there are %d keys, want %d", keys, want)
	}
}

// spreadChanges are commands that look at their keys in different ways, with what the first node executes.
var spreadChanges = []string{"SINTER A b", "SUNIONSTORE D b", "COPY b D", "RENAME b D", "SMOVE b D x", "MSETNX D 1 e 2"}

// TestGatherInPinned: keys of a pinned database lie in one partition, so no command stores them elsewhere, and no node
// lends them.
func TestGatherInPinned(t *testing.T) {
	g := startCrossRig(t)
	g.plain("SET b v")
	g.settings(map[string]string{ring.PinnedSetting: "8"})
	if got := g.gather(0, "COPY b D DB 8"); got != "(error) "+errCrossSlot {
		t.Errorf("COPY into a pinned database answers %s", got)
	}
	for _, line := range spreadChanges {
		if got := g.gatherOf(8, 0, line); got != "(error) "+exec.ErrClosed {
			t.Errorf("in a pinned database %s answers %s", line, got)
		}
	}
	p, key := dialPeer(t, g.nodes[0]), []byte(g.names["A"])
	if _, err := p.Lend(8, key, false, nil); answered(err) != textError(exec.ErrClosed) {
		t.Errorf("LEND in a pinned database: %v", err)
	}
	if _, err := p.Cede(8, key, []byte("v")); answered(err) != textError(exec.ErrClosed) {
		t.Errorf("CEDE in a pinned database: %v", err)
	}
	if _, err := p.Reserve(8, []byte("LLEN"), key); answered(err) != textError(exec.ErrClosed) {
		t.Errorf("RESERVE in a pinned database: %v", err)
	}
	g.wantKeys(2)
	g.wantNothingLeft()
}

// TestGatherInClosed: while a database is being pinned a command waits in its proxy, and what has begun waits for the
// end of that.
func TestGatherInClosed(t *testing.T) {
	for _, pinned := range []string{"", "8"} {
		g := startCrossRig(t)
		g.plain("SADD b x")
		h := holdPartition(g.nodes[1], g.names["b"])
		g.sendOf(8, 0, "SUNIONSTORE D b")
		g.pipes[0].read()
		g.sendOf(0, 0, "COPY b E DB 8")
		g.pipes[0].read()
		g.settings(ring.Closing{Databases: ring.Databases(0).With(8), Name: "x"}.Changes())
		var before uint64
		eventually(t, "the node says what it has lent", func() bool {
			s, err := g.nodes[1].Stats()
			before = s.Commands[command.DunlinLend]
			return err == nil
		})
		h.End()
		for _, line := range spreadChanges {
			if got := g.gatherOf(8, 0, line); !strings.HasPrefix(got, "(error) DUNLINWAIT") {
				t.Errorf("in a closed database %s answers %s", line, got)
			}
		}
		g.lent(1, before+5) // one value of database 0, and database 8 refuses again and again
		g.wantKeys(2)
		changes := ring.Closing{}.Changes()
		changes[ring.PinnedSetting] = pinned
		g.settings(changes)
		got := []string{string(g.pipes[0].read()), string(g.pipes[0].read())}
		for _, push := range got {
			switch {
			case pinned == "" && !strings.HasSuffix(push, ":0\r\n") && !strings.HasSuffix(push, ":1\r\n"):
				t.Errorf("it is completed by %q", push)
			case pinned != "" && !strings.Contains(push, "-"+exec.ErrClosed):
				t.Errorf("it is completed by %q in a database that is pinned", push)
			}
		}
		if pinned == "" {
			g.wantKeys(3)
		} else {
			g.wantKeys(2)
		}
		g.wantNothingLeft()
	}
}

// TestRenameWhileItIsBeingPinned: a key that is stored under its new name loses its old one, also
// in a database that is closed by then.
func TestRenameWhileItIsBeingPinned(t *testing.T) {
	g := startCrossRig(t)
	for _, c := range g.clients {
		c.want("SELECT 8", "OK")
	}
	g.plain("SADD A p")
	h := holdPartition(g.nodes[1], g.names["b"])
	g.sendOf(8, 1, "RENAME A b")
	g.lent(0, 1)
	s, err := g.nodes[0].placing.Load().document.With(1, ring.Closing{Databases: ring.Databases(0).With(8), Name: "x"}.Changes())
	if err != nil {
		t.Fatal(err)
	}
	g.nodes[0].ApplySettings(s) // the owner of the old name hears of it first
	h.End()
	if got := g.pipes[1].completed(); got != "OK" {
		t.Errorf("RENAME answers %s", got)
	}
	g.wantKeys(2)
	g.nodes[0].ApplySettings(nil)
	g.clients[0].want("EXISTS "+g.names["A"], "(integer) 0")
	g.clients[1].want("SCARD "+g.names["b"], "(integer) 1")
	g.wantNothingLeft()
}

// TestOneSlotNoMore: a command whose keys share a slot while their database is pinned, and that is
// sent again when it is not any more, is refused as any other whose keys lie in several slots.
func TestOneSlotNoMore(t *testing.T) {
	g := startCrossRig(t)
	closing := ring.Closing{Databases: ring.Databases(0).With(8), Name: "x"}
	lines := []string{
		"SINTER A B", "SUNIONSTORE A B", "RENAME A B", "COPY A B", "SMOVE A B x", "LMOVE A B LEFT LEFT", "MSETNX A 1 B 2",
		"BITOP NOT A B", "SORT A STORE B", "PFMERGE A B", "PFCOUNT A B", "LCS A B", "ZUNION 2 A B", "GEORADIUS A 1 1 1 m STORE B",
		"EVAL return 2 A B", "XREAD STREAMS A B 0 0", "LMPOP 2 A B LEFT", "BLPOP A B 1",
	}
	p := g.pipes[0]
	for _, line := range lines {
		g.settings(map[string]string{ring.PinnedSetting: "8"})
		g.settings(closing.Changes())
		pinned := g.pipes[g.table.Owner[ring.PinnedPartition(8)]]
		pinned.sendRaw(pinned.of(8, g.words(line, false)))
		if got := string(pinned.read()); !strings.HasPrefix(got, "-DUNLINWAIT") {
			t.Errorf("in a closed database %s answers %q", line, got)
		}
		changes := ring.Closing{}.Changes()
		changes[ring.PinnedSetting] = ""
		g.settings(changes)
		for _, pipe := range g.pipes {
			pipe.want(fmt.Sprint("DUNLIN RETRY ", g.table.Epoch), "OK")
		}
		p.wantOf(8, g.words(line, false), "(error) "+errCrossSlot)
	}
}
