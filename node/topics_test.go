package node

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestMoveTakesListenersAlong: PUBLISH counts a proxy's subscribers at the next owner of a channel before the
// proxy has heard of the table.
func TestMoveTakesListenersAlong(t *testing.T) {
	nodes, table, key := startTrio(t)
	p := partitionOf(key)
	table = altered(table, func(next *ring.Table) { next.Level = ring.Level })
	install(t, table, nodes[:]...)
	_, say := listeningPipe(t, nodes[0])
	channel := []byte("{" + key + "}channel")
	for kind, count := range map[pubsub.Kind]int{pubsub.Channel: 3, pubsub.Shard: 2} {
		if got, _ := say(member.Listen{Kind: uint8(kind), Name: channel, Count: count}); got != member.Noted {
			t.Fatalf("LISTEN is answered by %d", got)
		}
	}
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	nodes[1].SetTable(altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }))
	eventually(t, "the new owner serves", nodes[1].Serving)
	b := dial(t, nodes[1].Addr())
	b.want("PUBLISH "+string(channel)+" m", "(integer) 3")
	b.want("SPUBLISH "+string(channel)+" m", "(integer) 2")

	// The proxy follows, with another number.
	_, say = listeningPipe(t, nodes[1])
	answer, messages := say(member.Listen{Mode: member.Follow, Name: channel, Count: 1})
	if answer != member.Noted || messages > 1 {
		t.Errorf("LISTEN is answered by %d behind %d messages", answer, messages)
	}
	b.want("PUBLISH "+string(channel)+" m", "(integer) 1")
}
