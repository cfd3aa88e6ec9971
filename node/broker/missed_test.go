package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// TestMissed: what a receiver has got by a pattern it did not miss, and what was handed over is
// gone here. Those who are live at the next owner get it at once. All memory comes back.
func TestMissed(t *testing.T) {
	middle, _ := newBroker()
	next, _ := newBroker()
	const began, moved = 4, 5
	c := []byte("c")
	late, live, byPattern := receiver(), receiver(), receiver()
	late.Origin, live.Origin, byPattern.Origin = Origin{7, 0}, Origin{7, 1}, Origin{7, 2}
	middle.Expect(Told{late.Origin, pubsub.Channel, "c", 1}, began)
	middle.Expect(Told{live.Origin, pubsub.Channel, "c", 1}, began)
	middle.Listen(byPattern, pubsub.Pattern, []byte("*"), 1)
	say := func(channel, payload string, epoch uint64) {
		t.Helper()
		if _, ok := middle.Publish(pubsub.Channel, []byte(channel), []byte(payload), epoch); !ok {
			t.Fatal("there is no memory")
		}
	}
	say("c", "older", began-1)
	say("c", "one", began)
	middle.Expect(Told{byPattern.Origin, pubsub.Channel, "c", 1}, began)
	say("stays", "other", began)
	say("c", "two", began)

	next.ListenAs(Follow, live, pubsub.Channel, c, 1, moved)
	list, _, done := middle.Missed(func(channel string) bool { return channel == "c" },
		func(string) uint64 { return began }, goOn)
	for _, m := range list {
		next.Miss(m.Kind, m.Channel, m.Payload, m.By, moved)
	}
	done()
	publishAs := func(payload string) { next.Publish(pubsub.Channel, c, []byte(payload), moved) }
	publishAs("three")
	wantPayloads(t, live, "one", "two", "three")
	wantPayloads(t, byPattern, "older", "one", "other")
	for _, rc := range []*Receiver{late, byPattern} {
		if !next.ListenAs(Follow, rc, pubsub.Channel, c, 1, moved) {
			t.Error("something was lost")
		}
	}
	wantPayloads(t, late, "one", "two", "three")
	wantPayloads(t, byPattern, "two", "three")
	next.ListenAs(Follow, late, pubsub.Channel, c, 1, moved+1)
	wantPayloads(t, late) // nothing twice
	if list, _, done := middle.Missed(everything, func(string) uint64 { return began }, goOn); len(list) > 0 {
		t.Errorf("%d messages are missed of channels that nobody follows", len(list))
		done()
	}

	long := []byte(strings.Repeat("x", maxBacklog/2))
	gone := Origin{8, 0}
	if !next.Miss(pubsub.Channel, c, long, []Origin{gone}, moved) || next.Miss(pubsub.Channel, c, long, []Origin{gone}, moved) {
		t.Error("the backlog has another bound")
	}
	last := receiver()
	if next.Lost() != 1 || next.ListenAs(Follow, last, pubsub.Channel, c, 1, moved) {
		t.Errorf("%d messages are lost, and who follows does not hear of that", next.Lost())
	}
	wantPayloads(t, last, "three")
	for _, b := range []*Broker{middle, next} {
		b.Forget()
		if n := b.room.used.Load(); n != 0 || b.keeping.Load() != 0 {
			t.Errorf("%d bytes stay charged, and %d in the backlog", n, b.keeping.Load())
		}
	}
}

// TestMissedInTurns: many messages are taken out of a backlog in turns, in their order; others of the same stripe stay.
func TestMissedInTurns(t *testing.T) {
	const began = 4
	b, _ := newBroker()
	at, _ := b.stripeOf([]byte("c"))
	stays := inStripe(b, at, "stays")
	late := receiver()
	late.Origin = Origin{7, 1}
	for _, name := range []string{"c", stays} {
		b.Expect(Told{late.Origin, pubsub.Channel, name, 1}, began)
	}
	var of [2][]string
	for i := range 5 * siftedAtOnce {
		payload := fmt.Sprint(i)
		b.Publish(pubsub.Channel, []byte([]string{"c", stays}[i%2]), []byte(payload), began)
		of[i%2] = append(of[i%2], payload)
	}
	take := func(most int) (payloads []string, turns int, whole bool) {
		list, whole, done := b.Missed(func(channel string) bool { return channel == "c" },
			func(string) uint64 { return began }, func() bool { turns++; return turns < most })
		defer done()
		for _, m := range list {
			payloads = append(payloads, string(m.Payload))
		}
		return payloads, turns - len(b.stripes), whole
	}
	first, _, whole := take(at + 1)
	if whole || len(first) == 0 || len(first) > siftedAtOnce {
		t.Errorf("one turn takes %d messages, whole: %v", len(first), whole)
	}
	rest, turns, whole := take(1 << 20)
	if !whole || turns < 2 || !slices.Equal(slices.Concat(first, rest), of[0]) {
		t.Errorf("%d and %d messages are missed, want %d in their order; in %d turns more than stripes", len(first), len(rest), len(of[0]), turns)
	}
	b.ListenAs(Follow, late, pubsub.Channel, []byte(stays), 1, began)
	wantPayloads(t, late, of[1]...)
}

// inStripe returns a channel of a stripe whose name begins with prefix.
func inStripe(b *Broker, at int, prefix string) string {
	for i := 0; ; i++ {
		name := fmt.Sprint(prefix, i)
		if other, _ := b.stripeOf([]byte(name)); other == at {
			return name
		}
	}
}

// TestMissedByTwo: while one heir's messages are taken out of a backlog in turns, another heir's are, and a third
// channel's are discarded. Each heir gets all of its own in their order.
func TestMissedByTwo(t *testing.T) {
	const began = 4
	b, _ := newBroker()
	at, _ := b.stripeOf([]byte("c"))
	names := []string{"c", inStripe(b, at, "second"), inStripe(b, at, "discarded")}
	late := receiver()
	late.Origin = Origin{7, 1}
	for _, name := range names {
		b.Expect(Told{late.Origin, pubsub.Channel, name, 1}, began)
	}
	var of [3][]string
	for i := range 9 * siftedAtOnce {
		payload := fmt.Sprint(i)
		b.Publish(pubsub.Channel, []byte(names[i%3]), []byte(payload), began)
		of[i%3] = append(of[i%3], payload)
	}
	take := func(name string, between func(turn int)) (payloads []string) {
		turns := 0
		list, whole, done := b.Missed(func(channel string) bool { return channel == name },
			func(string) uint64 { return began }, func() bool { turns++; between(turns - at); return true })
		defer done()
		if !whole {
			t.Errorf("something of %s is missing", name)
		}
		for _, m := range list {
			payloads = append(payloads, string(m.Payload))
		}
		return payloads
	}
	var second []string
	first := take(names[0], func(turn int) {
		switch turn {
		case 1:
			second = take(names[1], func(int) {})
		case 2:
			b.Discard(func(channel string) bool { return channel == names[2] }, began)
		}
	})
	for i, got := range [][]string{first, second} {
		if !slices.Equal(got, of[i]) {
			t.Errorf("%d messages of %s are missed, want all %d in their order", len(got), names[i], len(of[i]))
		}
	}
	if b.Forget(); b.keeping.Load() != 0 {
		t.Errorf("%d bytes stay in the backlog", b.keeping.Load())
	}
}

// TestMissedByAHalfOpenConnection: a message of the owner before goes to who was live here earlier.
// If that receiver comes over another connection, it may not have got the message, and is told of a
// gap; if the channel moves on, the next owner is not told of it. If it says something over the
// connection, it has got the message.
func TestMissedByAHalfOpenConnection(t *testing.T) {
	const before, back = 4, 6
	c, of := []byte("c"), Origin{7, 1}
	start := func() (b *Broker, open *Receiver) {
		b, _ = newBroker()
		open = receiver()
		open.Origin = of
		b.ListenAs(Live, open, pubsub.Channel, c, 1, before)
		b.Expect(Told{of, pubsub.Channel, "c", 1}, back)
		if !b.IsTold(of, pubsub.Channel, c) || !b.Miss(pubsub.Channel, c, []byte("missed"), []Origin{of}, back) {
			t.Fatal("it does not take what is handed over")
		}
		wantPayloads(t, open, "missed")
		return b, open
	}
	told := func(b *Broker) (n int) {
		list, _, done := b.Told(everything, goOn)
		defer done()
		return len(list)
	}

	b, open := start()
	open.Close()
	if b.IsTold(of, pubsub.Channel, c) {
		t.Error("a receiver whose connection was closed has missed nothing")
	}
	anew := receiver()
	anew.Origin = of
	b.ListenAs(Ahead, anew, pubsub.Channel, c, 1, back)
	b.Leave(open)
	if b.IsTold(of, pubsub.Channel, c) {
		t.Error("a receiver whose connection has gone has missed nothing")
	}
	b.ListenAs(Follow, anew, pubsub.Channel, c, 1, back)
	if n := told(b); n != 1 {
		t.Errorf("of a receiver that has come over another connection is told %d times, want 1", n)
	}

	b, _ = start()
	if n := told(b); n != 0 {
		t.Errorf("the next owner is told of %d receivers that may have missed something", n)
	}

	b, open = start()
	b.ListenAs(Live, open, pubsub.Channel, c, 1, back)
	open.Close()
	if !b.IsTold(of, pubsub.Channel, c) {
		t.Error("a receiver has missed what it has got")
	}
}
