package proxy

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestCountedIsHeard: a node counts a subscription as soon as it knows of it. What it publishes
// from then on is shown behind the answer to the subscription, which comes when all nodes know of
// it, unless one refuses it.
func TestCountedIsHeard(t *testing.T) {
	for _, x := range []struct {
		commands string
		last     member.Heard // what the second node says at last
		want     []string
	}{
		{"SUBSCRIBE c", member.Noted, []string{"*3 $9 subscribe $1 c :1", "*3 $7 message $1 c $1 m"}},
		{"PSUBSCRIBE *", member.Noted, []string{"*3 $10 psubscribe $1 * :1", "*4 $8 pmessage $1 * $1 c $1 m"}},
		{"PSUBSCRIBE *", member.TooMany, []string{strings.TrimSpace(string(errTooManyTopics))}},
		// The subscription that is there in the end is shown what comes ahead of its answer.
		{"PSUBSCRIBE *;PUNSUBSCRIBE *;PSUBSCRIBE *", member.Noted, []string{
			"*3 $10 psubscribe $1 * :1", "*3 $12 punsubscribe $1 * :0", "*3 $10 psubscribe $1 * :1", "*4 $8 pmessage $1 * $1 c $1 m",
		}},
	} {
		c := newCluster(t, 2, oneLoop(t))
		var knows atomic.Bool
		c.nodes[0].set(func(n *fakeNode) {
			n.listen = func([]string) member.Heard { return member.Noted }
			n.pushes = string(pubsub.AppendMessage(nil, pubsub.Channel, []byte("c"), []byte("m")))
		})
		c.nodes[1].set(func(n *fakeNode) {
			n.listen = func([]string) member.Heard {
				if knows.Load() {
					return x.last
				}
				return member.NotOwner
			}
		})
		c.level = ring.PubSubLevel
		c.route(func(int) int { return 0 })
		s := c.dial()
		for command := range strings.SplitSeq(x.commands, ";") {
			s.send(command)
		}
		eventually(t, "the message has come", func() bool { return c.stats().Heard > 0 })
		knows.Store(true)
		for _, want := range x.want {
			s.want(want)
		}
		if x.last == member.TooMany {
			s.send("PING")
			s.want("+PONG")
		}
	}
}
