package proxy

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// A new table has all topics looked at in turns. None is left out when others go meanwhile, or when the next
// table comes before the end.
func TestLookAtAllTakesTurns(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	const topics = 20 * settleTurn
	c.each(func(*netloop.Loop) {
		l := newListening(c.proxy.workers[0])
		for i := range topics {
			l.topicOf(pubsub.Channel, fmt.Sprint(i)).count = 1
		}
		begin := func() {
			for _, of := range l.all {
				of.listed = false
			}
			l.ready, l.blocked = nil, nil
			l.lookAtAll()
		}
		turn := func() {
			before := l.left
			if l.turn(); before-l.left > settleTurn {
				t.Errorf("a turn looks at %d topics", before-l.left)
			}
		}
		all := func(what string) {
			t.Helper()
			for l.left > 0 || len(l.ready) > 0 {
				turn()
			}
			for _, of := range l.all {
				if !of.listed { // who is looked at is blocked, because no pipe opens here
					t.Errorf("%s: topic %s was not looked at", what, of.name)
				}
			}
		}
		begin()
		all("all stay")
		for _, at := range []int{0, len(l.all) / 2, len(l.all)} {
			l.next = at
			begin()
			for range 3 {
				turn()
			}
			for range settleTurn { // of those that were looked at
				l.forget(l.all[l.next])
			}
			all("some have gone")
		}
		begin()
		for range 2 * topics / settleTurn {
			l.lookAtAll()
			turn()
		}
		l.left = 0
		all("it begins again in each turn")
	})
}

// TestNamesWithoutMemory: names for which there is no memory are not copied, and the session ends.
func TestNamesWithoutMemory(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t), func(cfg *Config) { cfg.Buffers = &budget{most: 16 << 20} })
	cl := c.dial()
	cl.send("PING")
	cl.want("+PONG")
	c.each(func(*netloop.Loop) {
		long := make([]byte, 1<<20)
		of := &changing{s: c.proxy.workers[0].clients[0]}
		for range 64 {
			of.names = append(of.names, long)
		}
		if of.keepNames() || &of.names[0][0] != &long[0] {
			t.Error("64 MiB of names are copied")
		}
	})
	cl.wantClosed()
}
