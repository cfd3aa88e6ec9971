package node

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestMoveTakesListenersAlong: PUBLISH counts a proxy's subscribers at the next owner of a channel before the
// proxy has heard of the table.
func TestMoveTakesListenersAlong(t *testing.T) {
	nodes, table, key := startTrio(t)
	nodes[0].topicsPatience = time.Minute
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

// TestTopicsDelayNoHandOver: a next owner that does not take who listens there gets its partitions all the same.
func TestTopicsDelayNoHandOver(t *testing.T) {
	refusal := make(chan error, 1)
	n := startLeveled(t, func(c *Config) {
		c.Dialer = func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			refusal <- ctx.Err()
			return nil, ctx.Err()
		}
	})
	n.topicsPatience = 10 * time.Millisecond
	_, say := listeningPipe(t, n)
	say(member.Listen{Name: []byte("c"), Count: 1})
	gets := new(ring.PartitionSet)
	gets.Add(partitionOf("c"))
	n.handTopics(t.Context(), memberOf(n), gets, 2)()
	if err := <-refusal; !errors.Is(err, context.Canceled) {
		t.Errorf("the next owner is given up because of %v", err)
	}
}
