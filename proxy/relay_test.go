package proxy

import (
	"log/slog"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/ring"
)

// sink keeps what a subscriber of a relay is shown. It belongs to one loop.
type sink struct{ texts []string }

func (s *sink) Push(frame []byte) {
	m, _ := pubsub.ParseMessage(frame)
	s.texts = append(s.texts, string(m.Payload))
}

// TestRelay: a relay tells brokers of the subscribers of a node, answers when they know, and shows what they push.
func TestRelay(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	c.level = ring.PubSubLevel
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			n.listen = func(args []string) member.Heard {
				if args[2] == "refused*" && args[3] != "0" {
					return member.TooMany
				}
				return member.Noted
			}
		})
	}
	c.route(func(int) int { return 0 })
	relay := &Relay{c.proxy} // one that was started by StartRelay has no clients of its own
	var at sink
	s := pubsub.NewSubscriber(&at)
	onLoop := func(f func()) {
		t.Helper()
		if err := c.proxy.cfg.Group.Each(func(*netloop.Loop) { f() }); err != nil {
			t.Fatal(err)
		}
	}
	change := func(kind pubsub.Kind, name string, more, wantRefused bool) {
		t.Helper()
		done, refused := false, false
		onLoop(func() {
			if more {
				s.Want(kind, []byte(name))
			} else {
				s.Unwant(kind, []byte(name))
			}
			relay.Change(0, s, kind, []byte(name), more, func(r bool) { done, refused = true, r })
		})
		eventually(t, "the brokers know of "+name, func() (is bool) {
			onLoop(func() { is = done })
			return is
		})
		if refused != wantRefused {
			t.Errorf("%s is refused: %v", name, refused)
		}
	}
	size := func(kind pubsub.Kind, name string, want int) {
		t.Helper()
		onLoop(func() {
			if got := relay.p.workers[0].listening.board.Size(kind, []byte(name)); got != want {
				t.Errorf("%d are shown %s, want %d", got, name, want)
			}
		})
	}
	c.nodes[0].set(func(n *fakeNode) {
		n.pushes = string(pubsub.AppendMessage(nil, pubsub.Channel, []byte("c"), []byte("hello")))
	})
	change(pubsub.Channel, "c", true, false)
	eventually(t, "the message is shown", func() (is bool) {
		onLoop(func() { is = len(at.texts) == 1 && at.texts[0] == "hello" })
		return is
	})
	change(pubsub.Pattern, "refused*", true, true)
	size(pubsub.Pattern, "refused*", 0)
	if s.Wants(pubsub.Pattern, []byte("refused*")) {
		t.Error("what was refused is wanted")
	}
	change(pubsub.Channel, "c", false, false)
	size(pubsub.Channel, "c", 0)
	change(pubsub.Channel, "d", true, false)
	onLoop(func() { // it goes while a change is on its way
		s.Want(pubsub.Channel, []byte("e"))
		relay.Change(0, s, pubsub.Channel, []byte("e"), true, func(bool) { t.Error("a subscriber that has gone is answered") })
		s.Mute()
		for _, name := range []string{"d", "e"} {
			relay.Leave(0, s, pubsub.Channel, []byte(name))
		}
	})
	size(pubsub.Channel, "d", 0)
	eventually(t, "nothing is left", func() (is bool) {
		onLoop(func() { l := relay.p.workers[0].listening; is = len(l.all) == 0 && l.subscriptions == 0 })
		return is
	})
	if gaps, lost := relay.Counts(0); gaps != 0 || lost != 0 {
		t.Errorf("%d gaps, %d lost", gaps, lost)
	}
}

// TestRelayBeforeItsTable: without a table, a relay knows no brokers, so it cannot say that they know of a pattern,
// and who subscribes to a channel waits for a table.
func TestRelayBeforeItsTable(t *testing.T) {
	group := newGroup(t, 1)
	relay, err := StartRelay(Config{ID: "n", Boot: 7, Group: group, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	answered := false
	onLoop := func(f func()) {
		t.Helper()
		if err := group.Each(func(*netloop.Loop) { f() }); err != nil {
			t.Fatal(err)
		}
	}
	onLoop(func() {
		s := pubsub.NewSubscriber(new(sink))
		s.Want(pubsub.Pattern, []byte("p*"))
		relay.Change(0, s, pubsub.Pattern, []byte("p*"), true, func(bool) { answered = true })
		relay.p.workers[0].listening.turn()
		if answered {
			t.Error("a pattern is answered that no broker knows")
		}
	})
	channelAnswered := false
	onLoop(func() {
		l, s := relay.p.workers[0].listening, pubsub.NewSubscriber(new(sink))
		s.Want(pubsub.Channel, []byte("c"))
		relay.Change(0, s, pubsub.Channel, []byte("c"), true, func(bool) { channelAnswered = true })
		if l.turn(); channelAnswered || l.timer || len(l.blocked) > 0 {
			t.Errorf("a channel without an owner: answered %v, looked at by a timer %v", channelAnswered, l.timer)
		}
	})
	n := newFakeNode(t, "n1")
	n.set(func(n *fakeNode) { n.listen = func([]string) member.Heard { return member.Noted } })
	table := &ring.Table{Epoch: 1, Level: ring.PubSubLevel, Nodes: []ring.Member{n.member()}}
	relay.SetTable(table)
	eventually(t, "both are answered when the broker knows", func() (is bool) {
		onLoop(func() { is = answered && channelAnswered })
		return is
	})
	if err := relay.Close(); err != nil {
		t.Error(err)
	}
}
