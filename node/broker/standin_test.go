package broker

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

func everything(string) bool { return true }

func goOn() bool { return true }

// Stand-ins count at the next owner until their receivers say what they listen to, or are forgotten.
func TestStandIns(t *testing.T) {
	old, _ := newBroker()
	next, money := newBroker()
	one, two, own := receiver(), receiver(), receiver()
	one.Origin, two.Origin = Origin{7, 0}, Origin{7, 1}
	old.Listen(one, pubsub.Channel, []byte("c"), 2)
	old.Listen(two, pubsub.Channel, []byte("c"), 3)
	old.Listen(two, pubsub.Shard, []byte("c"), 1)
	old.Listen(own, pubsub.Channel, []byte("c"), 9) // of the node itself
	old.Listen(one, pubsub.Channel, []byte("stays"), 1)
	gone := receiver()
	gone.Origin = Origin{8, 0}
	old.Listen(gone, pubsub.Channel, []byte("c"), 5)
	gone.Close()

	ahead := receiver()
	ahead.Origin = two.Origin
	next.ListenAs(Ahead, ahead, pubsub.Channel, []byte("c"), 1, 4) // older than what the owner before knows
	list, _, done := old.Told(func(name string) bool { return name == "c" }, goOn)
	for _, told := range list {
		if !next.Expect(told, 1) {
			t.Fatal("there is no memory")
		}
	}
	done()
	if len(list) != 3 {
		t.Errorf("%v is told", list)
	}
	publish(t, next, pubsub.Channel, "c", "m", 2+3)
	publish(t, next, pubsub.Shard, "c", "m", 1)
	publish(t, next, pubsub.Channel, "stays", "m", 0)

	// What a stand-in counts is told to a third owner, and counts here no more.
	third, _ := newBroker()
	list, _, done = next.Told(everything, goOn)
	for _, told := range list {
		third.Expect(told, 1)
	}
	done()
	publish(t, third, pubsub.Channel, "c", "m", 2+3)
	publish(t, next, pubsub.Channel, "c", "m", 3)
	publish(t, next, pubsub.Shard, "c", "m", 0)

	// A receiver replaces its stand-in, also by nothing. One that is live already is not replaced.
	here := receiver()
	here.Origin = one.Origin
	third.ListenAs(Follow, here, pubsub.Channel, []byte("c"), 4, 9)
	publish(t, third, pubsub.Channel, "c", "m", 4+3)
	third.Expect(Told{one.Origin, pubsub.Channel, "c", 2}, 1)
	publish(t, third, pubsub.Channel, "c", "m", 4+3)
	here.Origin = two.Origin
	third.Listen(here, pubsub.Shard, []byte("c"), 0)
	publish(t, third, pubsub.Shard, "c", "m", 0)
	third.Forget()
	publish(t, third, pubsub.Channel, "c", "m", 4)

	next.Expect(Told{Origin{9, 9}, pubsub.Channel, "c", 1}, 1)
	if !next.Keeps() {
		t.Error("it keeps nothing")
	}
	next.Forget()
	publish(t, next, pubsub.Channel, "c", "m", 3)
	if next.Keeps() || money.taken > roomChunk || next.room.used.Load() != 0 {
		t.Errorf("%d bytes stay charged", next.room.used.Load())
	}
	if n := next.Topics(pubsub.Channel) + next.Topics(pubsub.Shard); n != 1 {
		t.Errorf("there are %d channels", n)
	}
}

// Stand-ins take a bounded amount of memory.
func TestTooManyStandIns(t *testing.T) {
	b, money := newBroker()
	name := string(make([]byte, pubsub.MaxName))
	n := 0
	for b.Expect(Told{Origin{1, n}, pubsub.Channel, name, 1}, 1) {
		n++
	}
	if want := maxExpected / (toldMemory + 2*len(name)); n != want {
		t.Errorf("%d are expected, want %d", n, want)
	}
	list, whole, done := b.Told(everything, goOn)
	done()
	if len(list) != n || !whole {
		t.Errorf("%d are told of %d; whole: %v", len(list), n, whole)
	}
	b.Forget()
	money.limit = money.taken
	publish(t, b, pubsub.Channel, name, "m", 0)
	for i := 0; b.Expect(Told{Origin{1, i}, pubsub.Channel, name, 1}, 1); i++ {
		if i == n {
			t.Fatal("memory is not asked for")
		}
	}
}

// TestToldWithoutMemory: who asks what receivers have said hears that some of it is left out.
func TestToldWithoutMemory(t *testing.T) {
	b, money := newBroker()
	b.Expect(Told{Origin{1, 0}, pubsub.Channel, "c", 1}, 1)
	money.limit = money.taken
	for b.room.take(1) { // what is left of the last chunk
	}
	list, whole, done := b.Told(everything, goOn)
	defer done()
	if len(list) > 0 || whole {
		t.Errorf("%d are told; whole: %v", len(list), whole)
	}
}

// While stand-ins are being forgotten, nobody waits for that, and no receiver counts twice.
func TestForgetStandInsBesideOthers(t *testing.T) {
	b, _ := newBroker()
	c := Told{Origin{1, 0}, pubsub.Channel, "c", 2}
	b.Expect(c, 1)
	forgotten, size := b.takeStandIns()
	b.Expect(c, 1)
	publish(t, b, pubsub.Channel, "c", "m", 2)
	for _, rc := range forgotten {
		b.Leave(rc)
	}
	b.room.give(size)
	publish(t, b, pubsub.Channel, "c", "m", 2)

	_, s := b.stripeOf([]byte("c"))
	free := "d"
	for _, other := b.stripeOf([]byte(free)); other == s; _, other = b.stripeOf([]byte(free)) {
		free += "d"
	}
	s.mu.Lock() // so that forgetting does not end
	forgot, others := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(forgot)
		b.Forget()
	}()
	go func() {
		defer close(others)
		for b.Keeps() {
			runtime.Gosched()
		}
		b.Expect(Told{Origin{1, 0}, pubsub.Channel, free, 1}, 1)
	}()
	select {
	case <-others:
	case <-time.After(10 * time.Second):
		t.Error("others wait until stand-ins are forgotten")
	}
	s.mu.Unlock()
	<-forgot
	<-others
	publish(t, b, pubsub.Channel, "c", "m", 0)
	publish(t, b, pubsub.Channel, free, "m", 1)
}

// A long name counts as several topics in what Told does under one lock.
func TestToldRests(t *testing.T) {
	rests := func(size int) (n int) {
		b, _ := newBroker()
		rc := receiver()
		rc.Origin = Origin{1, 0}
		for i := range stripes * eachSteps / 4 {
			b.Listen(rc, pubsub.Channel, fmt.Appendf(nil, "%0*d", size, i), 1)
		}
		_, _, done := b.Told(func(string) bool { return false }, func() bool { n++; return true })
		done()
		return n
	}
	if short, long := rests(8), rests(8*nameStep); short > 0 || long < stripes {
		t.Errorf("it rests %d times between short names and %d times between long ones", short, long)
	}
}

// TestDiscard: what was handed over of a channel that has been elsewhere since is gone, and nothing
// else.
func TestDiscard(t *testing.T) {
	b, _ := newBroker()
	gone, comes := receiver(), receiver()
	gone.Origin, comes.Origin = Origin{7, 0}, Origin{7, 1}
	const before, now = 4, 5
	hand := func(channel, payload string, to *Receiver, epoch uint64) {
		t.Helper()
		by := []Origin{to.Origin}
		if !b.Expect(Told{to.Origin, pubsub.Channel, channel, 1}, epoch) || !b.Miss(pubsub.Channel, []byte(channel), []byte(payload), by, epoch) {
			t.Fatal("there is no memory")
		}
	}
	hand("c", "old", gone, before)
	hand("c", "new", comes, now)
	hand("stays", "old", gone, before)
	for i := range 3 * eachSteps {
		hand(fmt.Sprint("many", i), "old", gone, before)
	}
	b.Discard(func(channel string) bool { return channel != "stays" }, before)
	if n := b.Topics(pubsub.Channel); n != 2 {
		t.Errorf("%d channels have subscribers, want 2", n)
	}
	publish(t, b, pubsub.Channel, "c", "m", 1)
	publish(t, b, pubsub.Channel, "stays", "m", 1)
	for _, rc := range []*Receiver{gone, comes} {
		b.ListenAs(Follow, rc, pubsub.Channel, []byte("c"), 1, now)
	}
	wantPayloads(t, gone)
	wantPayloads(t, comes, "new")
	b.ListenAs(Follow, gone, pubsub.Channel, []byte("stays"), 1, now)
	wantPayloads(t, gone, "old")
	if b.Forget(); b.room.used.Load() != 0 || b.keeping.Load() != 0 {
		t.Errorf("%d bytes stay charged, and %d in the backlog", b.room.used.Load(), b.keeping.Load())
	}
}

// While all stand-ins are forgotten between two turns of Discard, that ends.
func TestDiscardWhileForgetting(t *testing.T) {
	b, _ := newBroker()
	for i := range 2 * eachSteps {
		b.Expect(Told{Origin{1, 0}, pubsub.Channel, fmt.Sprint(i), 1}, 1)
	}
	asked := 0
	b.Discard(func(string) bool {
		if asked++; asked == eachSteps { // between two locks, for all that Discard can tell
			b.standIns.by = nil
		}
		return false
	}, 1)
	if asked != eachSteps {
		t.Errorf("it looks at %d stand-ins, want %d", asked, eachSteps)
	}
}
