package broker

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// purse is a budget that remembers what was taken.
type purse struct {
	mu    sync.Mutex
	limit int64
	taken int64
}

func (p *purse) charge(n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken+n > p.limit {
		return false
	}
	p.taken += n
	return true
}

func (p *purse) refund(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
}

func newBroker() (*Broker, *purse) {
	p := &purse{limit: 1 << 40}
	return New(p.charge, p.refund), p
}

func receiver() *Receiver { return NewReceiver(1<<20, func() {}) }

// payloads takes what a receiver has.
func payloads(rc *Receiver) (all []string) {
	list, _ := rc.Take(nil, 1<<30)
	for _, m := range list {
		all = append(all, string(m.Payload))
		m.Release()
	}
	return all
}

func publish(t *testing.T, b *Broker, kind pubsub.Kind, channel, payload string, want int) {
	t.Helper()
	if n, ok := b.Publish(kind, []byte(channel), []byte(payload), 0); n != want || !ok {
		t.Errorf("PUBLISH %s %s gives %d, %v, want %d", channel, payload, n, ok, want)
	}
}

func wantPayloads(t *testing.T, rc *Receiver, want ...string) {
	t.Helper()
	if got := payloads(rc); !slices.Equal(got, want) {
		t.Errorf("the receiver gets %q, want %q", got, want)
	}
}

// All subscribers count, and a receiver gets a message once.
func TestPublish(t *testing.T) {
	b, _ := newBroker()
	one, two := receiver(), receiver()
	b.Listen(one, pubsub.Channel, []byte("c"), 2)
	b.Listen(two, pubsub.Channel, []byte("c"), 3)
	b.Listen(two, pubsub.Pattern, []byte("c*"), 4)
	b.Listen(two, pubsub.Pattern, []byte("*"), 1)
	b.Listen(one, pubsub.Shard, []byte("c"), 7)
	publish(t, b, pubsub.Channel, "c", "1", 10)
	publish(t, b, pubsub.Channel, "d", "2", 1)
	publish(t, b, pubsub.Shard, "c", "3", 7)
	publish(t, b, pubsub.Shard, "d", "4", 0)
	wantPayloads(t, one, "1", "3")
	wantPayloads(t, two, "1", "2")
	if b.Count(pubsub.Channel, []byte("c")) != 5 || b.Patterns() != 2 || b.Topics(pubsub.Channel) != 1 {
		t.Errorf("c has %d subscribers, there are %d patterns and %d channels",
			b.Count(pubsub.Channel, []byte("c")), b.Patterns(), b.Topics(pubsub.Channel))
	}
	b.Listen(two, pubsub.Channel, []byte("c"), 1)
	b.Listen(two, pubsub.Pattern, []byte("c*"), 0)
	publish(t, b, pubsub.Channel, "c", "5", 4)
	b.Leave(two)
	publish(t, b, pubsub.Channel, "c", "6", 2)
	b.Leave(one)
	publish(t, b, pubsub.Channel, "c", "7", 0)
	b.Each(pubsub.Channel, func(name string) int { t.Errorf("%s stays", name); return 1 }, func() bool { return true })
	if b.Patterns() > 0 {
		t.Errorf("%d patterns stay", b.Patterns())
	}
}

// A list of channels locks for a bounded number of them, and has all that are there from its beginning to its
// end, each once, although others come and go.
func TestEach(t *testing.T) {
	b, _ := newBroker()
	rc := receiver()
	const stay = 50_000
	for i := range stay {
		b.Listen(rc, pubsub.Channel, fmt.Append(nil, i), 1)
	}
	seen := map[string]int{}
	most, run, rests := 0, 0, 0
	b.Each(pubsub.Channel, func(name string) int {
		seen[name]++
		run++
		most = max(most, run)
		return 1
	}, func() bool {
		run = 0
		for i := range 300 {
			b.Listen(rc, pubsub.Channel, fmt.Appendf(nil, "new-%d-%d", rests, i), 1)
			b.Listen(rc, pubsub.Channel, fmt.Appendf(nil, "new-%d-%d", rests-2, i), 0)
		}
		rests++
		return true
	})
	for i := range stay {
		if n := seen[fmt.Sprint(i)]; n != 1 {
			t.Fatalf("channel %d is seen %d times", i, n)
		}
	}
	for name, n := range seen {
		if n > 1 {
			t.Errorf("%s is seen %d times", name, n)
		}
	}
	if most > 2*eachSteps || rests < stay/eachSteps-stripes {
		t.Errorf("%d channels are visited without a rest, with %d rests", most, rests)
	}
	visited := 0
	b.Each(pubsub.Channel, func(string) int { visited++; return eachSteps / 8 }, func() bool { return visited < 80 })
	if visited != 80 {
		t.Errorf("%d channels are visited when it is to end behind 80", visited)
	}
}

// A receiver that does not take its messages loses the newest, and they are counted.
func TestFullQueue(t *testing.T) {
	b, p := newBroker()
	rc := NewReceiver(1000, func() {})
	b.Listen(rc, pubsub.Channel, []byte("c"), 1)
	const all = 100
	for i := range all {
		publish(t, b, pubsub.Channel, "c", fmt.Sprint(i), 1)
	}
	got := payloads(rc)
	if len(got) == 0 || len(got)+int(rc.Lost()) != all || got[0] != "0" {
		t.Errorf("%d messages are queued and %d lost", len(got), rc.Lost())
	}
	publish(t, b, pubsub.Channel, "c", "x", 1)
	wantPayloads(t, rc, "x")
	b.Leave(rc)
	if used := b.room.used.Load(); used != 0 || p.taken > 4*roomChunk {
		t.Errorf("%d bytes stay in use, %d taken", used, p.taken)
	}
}

// A queue is as large as the memory of its messages, however short they are.
func TestQueueOfShortMessages(t *testing.T) {
	b, _ := newBroker()
	const limit = 1 << 20
	rc := NewReceiver(limit, func() {})
	b.Listen(rc, pubsub.Channel, []byte("c"), 1)
	for rc.Lost() == 0 {
		b.Publish(pubsub.Channel, []byte("c"), make([]byte, 16), 0)
	}
	used := b.room.used.Load()
	if queued := len(payloads(rc)); used > limit || queued < limit/512 {
		t.Errorf("%d messages are queued and take %d bytes", queued, used)
	}
}

func TestNoMemory(t *testing.T) {
	b, p := newBroker()
	p.limit = roomChunk
	rc := NewReceiver(1<<40, func() {})
	b.Listen(rc, pubsub.Channel, []byte("c"), 1)
	sent := 0
	for payload := make([]byte, 10<<10); ; sent++ {
		if _, ok := b.Publish(pubsub.Channel, []byte("c"), payload, 0); !ok {
			break
		}
	}
	if sent == 0 || len(payloads(rc)) != sent {
		t.Errorf("%d messages had memory, but others are queued", sent)
	}
	if _, ok := b.Publish(pubsub.Channel, []byte("c"), nil, 0); !ok {
		t.Error("there is no memory although all messages were released")
	}
}

func TestTooManyPatterns(t *testing.T) {
	b, _ := newBroker()
	rc := receiver()
	for i := range MaxPatterns {
		if !b.Listen(rc, pubsub.Pattern, fmt.Append(nil, i), 1) {
			t.Fatalf("pattern %d is refused", i)
		}
	}
	if b.Listen(rc, pubsub.Pattern, []byte("x"), 1) || !b.Listen(rc, pubsub.Pattern, []byte("0"), 2) {
		t.Error("one pattern too many is taken, or a known one refused")
	}
}

// Whether anybody may listen to keyspace notifications.
func TestWantsEvents(t *testing.T) {
	b, _ := newBroker()
	one, two := receiver(), receiver()
	f := func(want bool) {
		t.Helper()
		if got := b.WantsEvents(); got != want {
			t.Errorf("somebody wants events: %v", got)
		}
	}
	event, other := []byte("__keyevent@0__:del"), []byte("c")
	b.Listen(one, pubsub.Channel, other, 1)
	b.Listen(one, pubsub.Shard, event, 1)
	f(false)
	b.Listen(one, pubsub.Channel, event, 1)
	b.Listen(one, pubsub.Channel, event, 2)
	b.Listen(two, pubsub.Channel, event, 1)
	b.Listen(one, pubsub.Channel, event, 0)
	b.Listen(one, pubsub.Channel, event, 0)
	f(true)
	b.Listen(two, pubsub.Channel, event, 0)
	f(false)
	b.Listen(two, pubsub.Pattern, other, 1)
	f(true)
	b.Leave(two)
	f(false)
}

// No patterns make a message on a name of usual length cost more than MaxCost, and what goes is taken back.
func TestCostOfPatterns(t *testing.T) {
	b, _ := newBroker()
	rc := receiver()
	name := func(i int) []byte { return fmt.Appendf(nil, "*a?a?%d*b?*", i) }
	taken := 0
	for b.Listen(rc, pubsub.Pattern, name(taken), 1) {
		taken++
	}
	if cost := b.Cost(pubsub.Channel, make([]byte, usualName)); taken < 100 || taken == MaxPatterns || cost > MaxCost {
		t.Errorf("%d costly patterns are taken, and a message costs %d", taken, cost)
	}
	if b.Cost(pubsub.Channel, make([]byte, pubsub.MaxName)) <= MaxCost || b.Cost(pubsub.Shard, make([]byte, pubsub.MaxName)) > 0 {
		t.Error("a message on a long name costs as much as on a short one, or one on a shard channel anything")
	}
	b.Leave(rc)
	if cost := b.Cost(pubsub.Channel, make([]byte, pubsub.MaxName)); cost != 0 {
		t.Errorf("without patterns a message costs %d", cost)
	}
}

// A channel moves here: what is published before its receivers follow is kept for them.
func TestFollow(t *testing.T) {
	b, p := newBroker()
	rc, other := receiver(), receiver()
	b.ListenAs(Ahead, rc, pubsub.Channel, []byte("c"), 2, 7)
	b.Listen(other, pubsub.Channel, []byte("d"), 1)
	for i, channel := range []string{"c", "d", "c"} {
		want := map[string]int{"c": 2, "d": 1}[channel]
		if n, _ := b.Publish(pubsub.Channel, []byte(channel), fmt.Append(nil, i), 7); n != want {
			t.Errorf("message %d has %d subscribers, want %d", i, n, want)
		}
	}
	wantPayloads(t, rc)
	if !b.ListenAs(Follow, rc, pubsub.Channel, []byte("c"), 2, 7) {
		t.Error("the backlog has not all")
	}
	publish(t, b, pubsub.Channel, "c", "3", 2)
	wantPayloads(t, rc, "0", "2", "3")
	if !b.ListenAs(Follow, other, pubsub.Channel, []byte("c"), 1, 8) {
		t.Error("nothing was published since epoch 8, and not all is there")
	}
	wantPayloads(t, other, "1")

	long := make([]byte, 1<<20)
	for range 5 {
		b.Publish(pubsub.Channel, []byte("c"), long, 9)
	}
	if b.ListenAs(Follow, other, pubsub.Channel, []byte("c"), 1, 9) {
		t.Error("a backlog that has overflowed passes for whole")
	}
	b.Forget()
	b.Leave(rc)
	b.Leave(other)
	if used := b.room.used.Load(); used != 0 || b.keeping.Load() != 0 || p.taken > 4*roomChunk {
		t.Errorf("%d bytes stay in use, %d kept, %d taken", used, b.keeping.Load(), p.taken)
	}
}

// TestFollowOverAnotherConnection: what a receiver has got before it ended is not shown to it
// again, here nor at the next owner, over whichever connection it follows. What a connection had
// that broke may not have come: its proxy may have forgotten it long before.
func TestFollowOverAnotherConnection(t *testing.T) {
	c := []byte("c")
	for ended, want := range map[bool][]string{true: {"two"}, false: {"one", "two"}} {
		for _, follows := range []bool{true, false} {
			b, _ := newBroker()
			const epoch = 4
			before, now := receiver(), receiver()
			before.Origin, now.Origin = Origin{7, 0}, Origin{7, 0}
			b.ListenAs(Live, before, pubsub.Channel, c, 1, epoch)
			b.Publish(pubsub.Channel, c, []byte("one"), epoch)
			if ended {
				b.Listen(before, pubsub.Channel, c, 0)
			}
			before.Close()
			b.Publish(pubsub.Channel, c, []byte("two"), epoch)
			b.Leave(before)
			if follows {
				b.ListenAs(Follow, now, pubsub.Channel, c, 1, epoch)
				wantPayloads(t, now, want...)
			} else {
				b.ListenAs(Ahead, now, pubsub.Channel, c, 1, epoch)
				list, _, done := b.Missed(everything, func(string) uint64 { return epoch }, goOn)
				var missed []string
				for _, m := range list {
					missed = append(missed, string(m.Payload))
				}
				if !slices.Equal(missed, want) {
					t.Errorf("the receiver misses %q, want %q", missed, want)
				}
				done()
			}
			b.Leave(now)
			b.Forget()
			if n := b.room.used.Load(); n != 0 || b.keeping.Load() != 0 {
				t.Errorf("%d bytes stay charged, and %d in the backlog", n, b.keeping.Load())
			}
		}
	}
}

// TestFollowBehindABrokenConnection: what was handed over for a receiver that is to follow waits
// for it, though the connection over which it has said so has broken.
func TestFollowBehindABrokenConnection(t *testing.T) {
	for _, left := range []bool{false, true} {
		b, _ := newBroker()
		const epoch = 4
		c := []byte("c")
		before, now := receiver(), receiver()
		before.Origin, now.Origin = Origin{7, 0}, Origin{7, 0}
		b.ListenAs(Ahead, before, pubsub.Channel, c, 1, epoch)
		b.Miss(pubsub.Channel, c, []byte("one"), []Origin{now.Origin}, epoch)
		b.Publish(pubsub.Channel, c, []byte("two"), epoch)
		if before.Close(); left {
			b.Leave(before)
		}
		b.ListenAs(Follow, now, pubsub.Channel, c, 1, epoch)
		wantPayloads(t, now, "one", "two")
		b.Leave(before)
		b.Leave(now)
	}
}

// A receiver whose pattern matches a channel that moves here gets each message once. While it is expected to follow,
// messages wait for that, so that they do not overtake those of the node before.
func TestFollowWithPattern(t *testing.T) {
	c := []byte("c")
	for name, o := range map[string]struct {
		before func(b *Broker, rc *Receiver) // what the broker knows when messages come
		early  []string                      // what is queued at once
	}{
		"said so":        {func(b *Broker, rc *Receiver) { b.ListenAs(Ahead, rc, pubsub.Channel, c, 2, 7) }, nil},
		"has a stand-in": {func(b *Broker, rc *Receiver) { b.Expect(Told{rc.Origin, pubsub.Channel, "c", 2}, 1) }, nil},
		"is not known":   {func(*Broker, *Receiver) {}, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBroker()
			follows, ends, other := receiver(), receiver(), receiver()
			for i, rc := range []*Receiver{follows, ends, other} {
				rc.Origin = Origin{7, i}
				b.Listen(rc, pubsub.Pattern, c, 1)
				b.Listen(rc, pubsub.Pattern, []byte("*"), 1)
			}
			o.before(b, follows)
			o.before(b, ends)
			want := 6 + 4 - 2*len(o.early)
			for _, payload := range []string{"1", "2"} {
				if n, _ := b.Publish(pubsub.Channel, c, []byte(payload), 7); n != want {
					t.Errorf("the message has %d subscribers, want %d", n, want)
				}
			}
			b.Publish(pubsub.Channel, []byte("d"), []byte("of another channel"), 7)
			wantPayloads(t, other, "1", "2", "of another channel")
			wantPayloads(t, follows, append(slices.Clip(o.early), "of another channel")...)
			wantPayloads(t, ends, append(slices.Clip(o.early), "of another channel")...)

			b.ListenAs(Follow, follows, pubsub.Channel, c, 2, 7)
			b.Listen(ends, pubsub.Channel, c, 0)
			b.Publish(pubsub.Channel, c, []byte("3"), 7)
			later := []string{"1", "2", "3"}[len(o.early):]
			wantPayloads(t, follows, later...)
			wantPayloads(t, ends, later...)
			wantPayloads(t, other, "3")
			b.Forget()
			for _, rc := range []*Receiver{follows, ends, other} {
				b.Leave(rc)
			}
			if used := b.room.used.Load(); used != 0 || b.keeping.Load() != 0 {
				t.Errorf("%d bytes stay in use, %d kept", used, b.keeping.Load())
			}
		})
	}
}

// Publishers of several loops, and receivers that come and go: all get the messages of a channel in one
// order.
func TestOneOrder(t *testing.T) {
	b, _ := newBroker()
	receivers := []*Receiver{NewReceiver(1<<30, func() {}), NewReceiver(1<<30, func() {})}
	for _, rc := range receivers {
		b.Listen(rc, pubsub.Channel, []byte("c"), 1)
		b.Listen(rc, pubsub.Pattern, []byte("?"), 1)
	}
	var publishers sync.WaitGroup
	for i := range 4 {
		publishers.Go(func() {
			for n := range 500 {
				b.Publish(pubsub.Channel, []byte("c"), fmt.Appendf(nil, "%d-%d", i, n), 0)
			}
		})
	}
	comesAndGoes := receiver()
	for range 100 {
		b.Listen(comesAndGoes, pubsub.Pattern, []byte("*"), 1)
		b.Listen(comesAndGoes, pubsub.Pattern, []byte("*"), 0)
	}
	publishers.Wait()
	one, two := payloads(receivers[0]), payloads(receivers[1])
	if len(one) != 2000 || !slices.Equal(one, two) {
		t.Errorf("%d and %d messages, want 2000 in one order", len(one), len(two))
	}
}

func TestPublishAllocatesNothing(t *testing.T) {
	b, _ := newBroker()
	rc := receiver()
	b.Listen(rc, pubsub.Channel, []byte("c"), 1)
	b.Listen(rc, pubsub.Pattern, []byte("*"), 1)
	channel, payload := []byte("c"), make([]byte, 64)
	var list []*Message
	if n := testing.AllocsPerRun(1000, func() {
		b.Publish(pubsub.Channel, channel, payload, 0)
		list, _ = rc.Take(list[:0], 1<<20)
		for _, m := range list {
			m.Release()
		}
	}); n > 0 {
		t.Errorf("a message allocates %v times", n)
	}
}

// BenchmarkPublish publishes 64 bytes to so many receivers, beside so many patterns that do not match.
func BenchmarkPublish(b *testing.B) {
	for _, of := range []struct{ receivers, patterns int }{{0, 0}, {1, 0}, {100, 0}, {1, 100}} {
		b.Run(fmt.Sprintf("Broker/Receivers%d/Patterns%d", of.receivers, of.patterns), func(b *testing.B) {
			broker, _ := newBroker()
			receivers := make([]*Receiver, of.receivers)
			for i := range receivers {
				receivers[i] = receiver()
				broker.Listen(receivers[i], pubsub.Channel, []byte("c"), 1)
			}
			for i := range of.patterns {
				broker.Listen(receivers[0], pubsub.Pattern, fmt.Appendf(nil, "user:%d:*", i), 1)
			}
			channel, payload := []byte("c"), make([]byte, 64)
			var list []*Message
			for b.Loop() {
				broker.Publish(pubsub.Channel, channel, payload, 0)
				for _, rc := range receivers {
					list, _ = rc.Take(list[:0], 1<<20)
					for _, m := range list {
						m.Release()
					}
				}
			}
		})
	}
}

// BenchmarkCostlyPatterns publishes on a name of usualName bytes beside as many of the costliest patterns as
// are taken: a message costs MaxCost then.
func BenchmarkCostlyPatterns(b *testing.B) {
	for _, shape := range []struct {
		name, pattern string
		fill          byte
	}{
		{"Stars", "*a?a?%d*b?*", 'a'},
		{"ManyStars", "*a*a*a*a*a*a*a*a*%db", 'a'},
		{"Classes", "*[^b][^b][^b][^b]%d*b", 'a'},
		{"LongRun", "*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab%d", 'a'},
		{"Questions", "*????????????????????????????????b%d", 'a'},
		{"QuestionsBetween", "*?a?a?a?a?a?a?a?a?a?a?a?a?ab%d", 'a'},
		{"ClassesThatMatch", "*[a-c][a-c][a-c][a-c][a-c][a-c][a-c][a-c]%d*b", 'a'},
		{"StarsOfQuestions", "*????????????????b*????????????????b*%d", 'a'},
		{"Prefix", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%d*", 'a'},
	} {
		b.Run("Broker/"+shape.name, func(b *testing.B) {
			broker, _ := newBroker()
			rc := receiver()
			taken := 0
			for broker.Listen(rc, pubsub.Pattern, fmt.Appendf(nil, shape.pattern, taken), 1) {
				taken++
			}
			channel := bytes.Repeat([]byte{shape.fill}, usualName)
			for b.Loop() {
				broker.Publish(pubsub.Channel, channel, channel, 0)
			}
			b.ReportMetric(float64(taken), "patterns")
			b.ReportMetric(float64(broker.Cost(pubsub.Channel, channel)), "comparisons")
		})
	}
}
