package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestExpiredWhileItMoves: keys of a partition expire all the time while it moves: while the owner before still has
// loops that execute under the older table, while it hands over, and at the next owner. Each of them is told once.
func TestExpiredWhileItMoves(t *testing.T) {
	nodes, table, key := startLeveledTrio(t)
	p := partitionOf(key)
	heard := broker.NewReceiver(32<<20, func() {})
	for _, n := range nodes {
		n.events.obey(keyevent.Keyevent | keyevent.Expired)
		n.broker.Listen(heard, pubsub.Pattern, []byte("__keyevent@*"), 1)
	}
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	const keys = 6000
	c := dial(t, nodes[0].Addr())
	for i := range keys {
		c.send(fmt.Sprintf("SET {%s}%d v PX %d", key, i, 1+i/2))
	}
	for range keys {
		c.wantNext("OK")
	}
	release := holdLoops(t, nodes[0])
	moved := altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p], next.Follower[p] = nil, 1, 0 })
	done := make(chan struct{})
	go func() {
		defer close(done)
		nodes[0].SetTable(moved)
	}()
	eventually(t, "the owner before obeys", func() bool { return nodes[0].view.Load().Epoch() == moved.Epoch })
	before := nodes[0].engine.Stats().Expired
	eventually(t, "more expires there", func() bool { return nodes[0].engine.Stats().Expired >= before+50 })
	release()
	<-done
	install(t, moved, nodes[:]...)
	told := map[string]int{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%d of %d are told", len(told), keys)
		}
	})
	var list []*broker.Message
	eventually(t, "all that expires is told", func() bool {
		list, _ = heard.Take(list[:0], 1<<20)
		for _, m := range list {
			told[string(m.Payload)]++
			m.Release()
		}
		return len(told) == keys
	})
	for name, times := range told {
		if times != 1 || !strings.HasPrefix(name, "{"+key+"}") {
			t.Fatalf("%s is told %d times", name, times)
		}
	}
}
