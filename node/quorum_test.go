package node

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// fakePinger answers for the first so many nodes, by their ids.
type fakePinger struct{ reached atomic.Value }

func (p *fakePinger) Ping(_ context.Context, m ring.Member) error {
	if m.ID > p.reached.Load().(string) {
		return errors.New("no answer")
	}
	return nil
}

// TestQuorumFences: a node that hears too few others serves nothing, though gossip calls them alive,
// and serves again when it hears them and has confirmed its table.
func TestQuorumFences(t *testing.T) {
	n := startNode(t)
	table := n.view.Load().Table
	source := &fakeSource{table: table, confirm: make(chan *ring.Table)}
	alive := []ring.Member{memberOf(n)}
	for _, id := range []string{"b", "c", "d"} {
		alive = append(alive, ring.Member{ID: id, Boot: 1, Role: ring.RoleNode})
	}
	source.setAlive(alive...) // now, lest the node waits for their word to take over
	eventually(t, "the node has what it owns", n.Serving)
	n.SetAgent(source)
	p := new(fakePinger)
	p.reached.Store("b")
	n.require(3, p, 200*time.Millisecond)
	if c := dial(t, n.Addr()); n.Serving() {
		t.Error("serves before it has heard enough others")
	} else {
		c.want("GET k", saysTryAgain)
	}

	p.reached.Store("d")
	eventually(t, "it has heard enough others", n.Serving)
	p.reached.Store("b") // the others are behind a cut
	eventually(t, "it asks for the table", func() bool { return source.times() == 1 })
	c := dial(t, n.Addr())
	c.want("GET k", saysTryAgain)
	p.reached.Store("c")
	eventually(t, "it hears enough others", func() bool { return n.quorum.until.Load() > int64(n.cfg.Group.Clock()) })
	if n.Serving() {
		t.Error("serves before it has confirmed its table")
	}
	source.confirm <- table
	eventually(t, "the fence is lifted", n.Serving)
}
