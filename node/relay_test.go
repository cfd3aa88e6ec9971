package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/ring"
)

// fakeRelay stands for the brokers of all nodes. Its methods may be called on any loop.
type fakeRelay struct {
	n      *Node
	refuse string // the pattern that brokers do not take
	half   bool   // but one of them does, until another one has refused it

	mu     sync.Mutex
	boards map[int]*pubsub.Board
	counts map[string]int
	open   bool // changes are acknowledged at once
	due    []func()
}

func (f *fakeRelay) board(loop int) *pubsub.Board {
	if f.boards[loop] == nil {
		f.boards[loop] = new(pubsub.Board)
	}
	return f.boards[loop]
}

func (f *fakeRelay) Change(loop int, s *pubsub.Subscriber, kind pubsub.Kind, name []byte, more bool, done func(refused bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refused := more && string(name) == f.refuse
	switch {
	case refused:
		s.Unwant(kind, name)
	case more:
		f.board(loop).Show(s, kind, name)
		f.counts[string(name)]++
	default:
		f.board(loop).Hide(s, kind, name)
		f.counts[string(name)]--
	}
	if refused && f.half {
		s.Want(kind, name)
		f.board(loop).Show(s, kind, name)
	}
	answer := func() {
		f.n.workers[loop].loop.Post(func() {
			if !s.IsMuted() {
				if refused {
					s.Unwant(kind, name)
					f.hide(loop, s, kind, name)
				}
				done(refused)
			}
		})
	}
	if f.open {
		answer()
		return
	}
	f.due = append(f.due, answer)
}

func (f *fakeRelay) Leave(loop int, s *pubsub.Subscriber, kind pubsub.Kind, name []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Unwant(kind, name) {
		f.counts[string(name)]--
	}
	f.board(loop).Hide(s, kind, name)
}

func (f *fakeRelay) hide(loop int, s *pubsub.Subscriber, kind pubsub.Kind, name []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.board(loop).Hide(s, kind, name)
}

func (f *fakeRelay) Counts(int) (gaps, lost uint64) { return 3, 4 }

// acknowledge answers what is due, and from now on at once.
func (f *fakeRelay) acknowledge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = true
	for _, answer := range f.due {
		answer()
	}
	f.due = nil
}

// hold has changes wait for acknowledge.
func (f *fakeRelay) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = false
}

// show brings a message of another node to all loops, and returns when they have shown it.
func (f *fakeRelay) show(t *testing.T, channel, text string) {
	t.Helper()
	m, ok := pubsub.ParseMessage(pubsub.AppendMessage(nil, pubsub.Channel, []byte(channel), []byte(text)))
	if !ok {
		t.Fatal("the message is malformed")
	}
	if err := f.n.cfg.Group.Each(func(l *netloop.Loop) {
		f.mu.Lock()
		b := f.board(l.Index())
		f.mu.Unlock()
		b.Begin(m)
		b.Go(1 << 20)
	}); err != nil {
		t.Fatal(err)
	}
}

func (f *fakeRelay) waits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.due)
}

func (f *fakeRelay) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[name]
}

// startRelayed starts a node that has another one beside it, and a relay.
func startRelayed(t *testing.T) (*Node, *fakeRelay) {
	t.Helper()
	n := startBare(t)
	f := &fakeRelay{n: n, boards: make(map[int]*pubsub.Board), counts: make(map[string]int), open: true, refuse: "refused*"}
	n.SetRelay(f)
	table := soleTable(n)
	table.Level = ring.Level
	n.SetTable(table)
	giveAway(n, partitionOf("a"))
	return n, f
}

// TestRelayedMessagesBehindTheAnswer: what comes ahead of the answer to a subscription follows it.
func TestRelayedMessagesBehindTheAnswer(t *testing.T) {
	n, f := startRelayed(t)
	c := dial(t, n.Addr())
	c.do("HELLO 3")
	f.hold()
	c.send("SUBSCRIBE c d")
	eventually(t, "both are asked for", func() bool { return f.waits() == 2 })
	f.show(t, "c", "early")
	f.acknowledge()
	for _, want := range []string{
		"1) \"subscribe\"\n2) \"c\"\n3) (integer) 1", "1) \"subscribe\"\n2) \"d\"\n3) (integer) 2", "1) \"message\"\n2) \"c\"\n3) \"early\"",
	} {
		c.wantNext(want)
	}
	f.show(t, "d", "late")
	c.wantNext("1) \"message\"\n2) \"d\"\n3) \"late\"")
	c.want("PSUBSCRIBE refused*", "(error) "+errTooManyPatterns)
	c.want("GET none", "(nil)")
	f.hold()
	c.send("UNSUBSCRIBE c")
	eventually(t, "the end is asked for", func() bool { return f.waits() == 1 })
	f.show(t, "d", "meanwhile")
	f.acknowledge()
	c.wantNext("1) \"unsubscribe\"\n2) \"c\"\n3) (integer) 1")
	c.wantNext("1) \"message\"\n2) \"d\"\n3) \"meanwhile\"")
	if s, err := n.Stats(); err != nil || s.Gaps != 3*uint64(len(n.workers)) || s.RelayLost != 4*uint64(len(n.workers)) {
		t.Errorf("gaps %d, lost %d, %v", s.Gaps, s.RelayLost, err)
	}
}

// TestManyRelayedTopics: long commands are answered in turns, and the subscriptions of who goes meanwhile end.
func TestManyRelayedTopics(t *testing.T) {
	n, f := startRelayed(t)
	c := dial(t, n.Addr())
	const count = 2*namesAtOnce + 10
	var names strings.Builder
	for i := range count {
		fmt.Fprintf(&names, " n%d", i)
	}
	c.sendRaw([]byte("SUBSCRIBE" + names.String() + "\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nPING\r\n"))
	for i := range count {
		if got := string(c.read()); !strings.HasSuffix(got, fmt.Sprintf("n%d\r\n:%d\r\n", i, i+1)) {
			t.Fatalf("subscription %d is answered by %q", i, got)
		}
	}
	for left := count - 1; left >= 0; left-- {
		if got := string(c.read()); !strings.HasSuffix(got, fmt.Sprintf("\r\n:%d\r\n", left)) {
			t.Fatalf("with %d left comes %q", left, got)
		}
	}
	for _, want := range []string{"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", "+PONG\r\n"} {
		if got := string(c.read()); got != want {
			t.Errorf("behind the last one comes %q, want %q", got, want)
		}
	}
	goes := dial(t, n.Addr())
	goes.do("SUBSCRIBE x")
	f.hold()
	goes.send("SUBSCRIBE y")
	eventually(t, "it is asked for", func() bool { return f.waits() == 1 })
	goes.conn.Close()
	f.acknowledge()
	eventually(t, "nobody counts", func() bool { return f.count("x") == 0 && f.count("y") == 0 })
}

// TestRefusedMessages: a client is not shown what one broker has sent for a pattern that another one refuses.
func TestRefusedMessages(t *testing.T) {
	n, f := startRelayed(t)
	f.half = true
	c := dial(t, n.Addr())
	c.do("HELLO 3")
	f.hold()
	c.send("PSUBSCRIBE refused*")
	eventually(t, "it is asked for", func() bool { return f.waits() == 1 })
	f.show(t, "refused one", "early")
	f.acknowledge()
	c.wantNext("(error) " + errTooManyPatterns)
	c.want("GET none", "(nil)")
}

const fullNamesCount = 200

var fullNames = slices.Repeat([][]byte{make([]byte, pubsub.MaxName)}, fullNamesCount)

// TestNamesOfRelayedChange: the names of a command that waits for brokers are charged to its client.
func TestNamesOfRelayedChange(t *testing.T) {
	n, f := startRelayed(t)
	c := dial(t, n.Addr())
	c.do("SUBSCRIBE x")
	charged := func() int { return chargedToSubscribers(t, n) }
	f.hold()
	c.sendArgs(append([][]byte{[]byte("UNSUBSCRIBE"), []byte("x")}, fullNames...)...)
	eventually(t, "the end is asked for", func() bool { return f.waits() == 1 })
	const long = fullNamesCount * pubsub.MaxName
	if got := charged(); got < long {
		t.Errorf("%d bytes are charged while names of %d wait", got, long)
	}
	f.acknowledge()
	for range 1 + fullNamesCount {
		c.read()
	}
	if got := charged(); got > long {
		t.Errorf("%d bytes are charged when it is answered", got)
	}
}

// chargedToSubscribers returns what connections with subscriptions take, in bytes.
func chargedToSubscribers(t *testing.T, n *Node) (bytes int) {
	t.Helper()
	var mu sync.Mutex
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		mu.Lock()
		defer mu.Unlock()
		bytes += n.workers[l.Index()].subscribersBytes()
	}); err != nil {
		t.Fatal(err)
	}
	return bytes
}

func (w *worker) subscribersBytes() (bytes int) {
	for cn := range w.conns {
		if cn.topics != nil {
			bytes += cn.otherBytes()
		}
	}
	return bytes
}

// TestNamesOfTurns: the names of a command that is carried out in turns are charged to its client.
func TestNamesOfTurns(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.do("SUBSCRIBE x")
	var most atomic.Int64
	var over atomic.Bool
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		w := n.workers[l.Index()]
		var look func() // it always waits for its turn, so it looks between two of a command
		look = func() {
			if bytes := int64(w.subscribersBytes()); bytes > most.Load() {
				most.Store(bytes)
			}
			if !over.Load() {
				w.turns.take(look)
			}
		}
		w.turns.take(look)
	}); err != nil {
		t.Fatal(err)
	}
	args := [][]byte{[]byte("UNSUBSCRIBE")}
	for i := range namesAtOnce {
		args = append(args, fmt.Appendf(nil, "n%d", i))
	}
	c.sendArgs(append(args, fullNames...)...)
	for range namesAtOnce + fullNamesCount {
		c.read()
	}
	over.Store(true)
	const long = fullNamesCount * pubsub.MaxName
	if most.Load() < long {
		t.Errorf("%d bytes are charged while names of %d wait for their turn", most.Load(), long)
	}
	if got := chargedToSubscribers(t, n); got > long {
		t.Errorf("%d bytes are charged when it is answered", got)
	}
}

// TestCountsBehindARefusal: what a broker refuses does not count in the answers behind it.
func TestCountsBehindARefusal(t *testing.T) {
	n, f := startRelayed(t)
	f.mu.Lock()
	f.half = true
	f.mu.Unlock()
	c := dial(t, n.Addr())
	c.want("PSUBSCRIBE a* refused* refused* b*", "1) \"psubscribe\"\n2) \"a*\"\n3) (integer) 1")
	c.wantNext("(error) " + errTooManyPatterns)
	c.wantNext("(error) " + errTooManyPatterns)
	c.wantNext("1) \"psubscribe\"\n2) \"b*\"\n3) (integer) 2")
}

// TestDrainWhileBrokersAreAsked: a client whose subscription no broker acknowledges does not keep a node from draining.
func TestDrainWhileBrokersAreAsked(t *testing.T) {
	n, f := startRelayed(t)
	c := dial(t, n.Addr())
	f.hold()
	c.send("SUBSCRIBE c")
	eventually(t, "the broker is asked", func() bool { return f.waits() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := n.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if got := c.next(); got != "(closed)" {
		t.Errorf("the client gets %s", got)
	}
	f.acknowledge()
}

// TestPublicationWithoutReply: what waits for the reply to PUBLISH goes on if there is none, because no job could begin.
func TestPublicationWithoutReply(t *testing.T) {
	n, _ := startRelayed(t)
	ends := 0
	p := &publication{heap: heapBudget{n}, replied: func() { ends++ }}
	p.End()
	p.End()
	if ends != 1 {
		t.Errorf("it has ended %d times, want once", ends)
	}
}
