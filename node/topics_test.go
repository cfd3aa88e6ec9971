package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	n.handTopics(t.Context(), memberOf(n), gets, n.view.Load().Began[:], 2)()
	if err := came(t, "the refusal", refusal); !errors.Is(err, context.Canceled) {
		t.Errorf("the next owner is given up because of %v", err)
	}
}

// TestChannelsThatMoveTwice: a channel moves on before a proxy has followed. What was published at the node in the
// middle comes to the proxy ahead of what comes later, and once. A proxy that has followed gets nothing twice.
func TestChannelsThatMoveTwice(t *testing.T) {
	for _, back := range []bool{false, true} {
		nodes, table, key := startTrio(t)
		p, channel := partitionOf(key), "{"+key+"}channel"
		table = altered(table, func(next *ring.Table) { next.Level = ring.Level })
		install(t, table, nodes[:]...)
		var clients [3]*client
		for i, n := range nodes {
			n.topicsPatience = time.Minute
			clients[i] = dial(t, n.Addr())
		}
		pipes := map[[2]int]*client{}
		listen := func(node, loop int, mode member.Mode) {
			t.Helper()
			at := pipes[[2]int{node, loop}]
			if at == nil {
				at = dial(t, nodes[node].Addr())
				at.want(fmt.Sprintf("%s %d", pipeLine(7, loop, "listen", 1, 3), ring.Level), "OK later")
				pipes[[2]int{node, loop}] = at
			}
			at.sendRaw(member.AppendListen(nil, member.Listen{Mode: mode, Name: []byte(channel), Count: 1}))
			at.frame("LISTEN", ":1")
		}
		gets := func(node, loop int, want ...string) {
			t.Helper()
			at := pipes[[2]int{node, loop}]
			at.sendRaw(member.AppendListen(nil, member.Listen{Name: []byte(channel)})) // what waits is shown ahead of the answer
			var got []string
			for {
				frame := at.read()
				m, ok := pubsub.ParseMessage(frame)
				if !ok {
					break
				}
				got = append(got, string(m.Payload))
			}
			if !slices.Equal(got, want) {
				t.Errorf("back %v: loop %d gets %q from node %d, want %q", back, loop, got, node, want)
			}
		}
		move := func(from, to uint16) {
			t.Helper()
			moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: from, To: to}} })
			install(t, moving, nodes[:]...)
			eventually(t, "the copy is in sync", inSync(nodes[to], p))
			table = altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, to })
			install(t, table, nodes[:]...)
		}
		publish := func(node int, messages ...string) {
			t.Helper()
			for _, m := range messages {
				clients[node].want("PUBLISH "+channel+" "+m, "(integer) 2")
			}
		}
		const late, quick = 0, 1 // the two loops
		listen(0, late, member.Live)
		listen(0, quick, member.Live)
		publish(0, "zero")
		move(0, 1)
		publish(1, "one", "two")
		gets(0, quick, "zero")
		listen(1, quick, member.Follow)
		publish(1, "three")
		if back {
			move(1, 0)
			publish(0, "four")
			listen(0, quick, member.Follow)
			gets(0, late, "zero", "one", "two", "three", "four") // it was live there
			gets(0, quick, "four")
		} else {
			move(1, 2)
			publish(2, "four")
			listen(2, quick, member.Follow)
			listen(2, late, member.Follow)
			gets(0, late, "zero")
			gets(2, late, "one", "two", "three", "four")
			gets(2, quick, "four")
		}
		gets(1, quick, "one", "two", "three")
	}
}
