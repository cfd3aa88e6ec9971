package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestElementsHere: between keys of one node elements move without a connection.
func TestElementsHere(t *testing.T) {
	g := startCrossRig(t)
	for i := range 20 {
		g.clients[0].do(fmt.Sprintf("RPUSH %s %d", g.names["A"], i))
		g.clients[0].do(fmt.Sprintf("RPUSH %s %d", g.names["D"], i))
	}
	pipes := []*client{g.pipes[0], dial(t, g.nodes[0].Addr())}
	pipes[1].want(fmt.Sprintf(`DUNLIN PIPE 2 0 common 1 2 "" %d`, ring.Level), "OK later") // of another proxy
	for range 50 {
		pipes[0].send("DUNLIN GATHER " + g.words("LMOVE A D LEFT RIGHT", false))
		pipes[1].send("DUNLIN GATHER " + g.words("RPOPLPUSH D A", false))
		for _, p := range pipes {
			if got := p.completed(); !strings.HasPrefix(got, `"`) {
				t.Errorf("it answers %s", got)
			}
		}
	}
	if got := g.gather(0, "MSETNX C 1 E 2"); got != "(integer) 1" {
		t.Errorf("MSETNX answers %s", got)
	}
	g.clients[0].want("LLEN "+g.names["A"], "(integer) 20")
	g.clients[0].want("LLEN "+g.names["D"], "(integer) 20")
	lenders := &g.nodes[0].lenders
	lenders.mu.Lock()
	if len(lenders.idle) > 0 {
		t.Errorf("there are connections to %d nodes", len(lenders.idle))
	}
	lenders.mu.Unlock()
	g.wantNothingLeft()
}
