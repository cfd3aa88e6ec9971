package node

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/node/stream"
	"github.com/dunlin-cache/dunlin/ring"
)

// fakeCopies takes all that a sender feeds, as its marks say.
type fakeCopies struct {
	n *Node

	mu      sync.Mutex
	states  [ring.Partitions]uint8 // the last mark
	args    [ring.Partitions]uint64
	deny    bool // of marks: refuse them
	refused []uint16
	voids   int
	begun   int
}

func (c *fakeCopies) Admits(p uint16) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok := c.states[p] != 0 && c.states[p] != replica.MarkHanded
	if !ok {
		c.refused = append(c.refused, p)
	}
	return ok
}

func (c *fakeCopies) Marked(p uint16, m engine.Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deny || m.Kind == replica.MarkContinue && (c.states[p] != replica.MarkHanded || c.args[p] != m.Arg) {
		c.refused = append(c.refused, p)
		return
	}
	if m.Kind == replica.MarkBegin {
		c.begun++
		c.n.engine.Drop(p)
	}
	c.states[p], c.args[p] = m.Kind, m.Arg
}

func (c *fakeCopies) Heard() {}

func (c *fakeCopies) Reopened() {}

func (c *fakeCopies) Void() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voids++
	for p := range c.states {
		if c.states[p] != 0 && c.states[p] != replica.MarkHanded {
			c.states[p] = 0
			c.n.engine.Drop(uint16(p))
		}
	}
}

func (c *fakeCopies) TakeRefused() []uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.refused
	c.refused = nil
	return list
}

func (c *fakeCopies) voided() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.voids
}

func (c *fakeCopies) mark(p uint16) (kind uint8, arg uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[p], c.args[p]
}

// takeAll has all partitions in sync.
func (c *fakeCopies) takeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.states {
		c.states[p] = replica.MarkSynced
	}
}

func (c *fakeCopies) count(kind uint8) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.states {
		if s == kind {
			n++
		}
	}
	return n
}

// startReceiver starts a node that takes copies.
func startReceiver(t testing.TB, change ...func(*Config)) (*Node, *fakeCopies) {
	t.Helper()
	n := startBare(t, append([]func(*Config){func(c *Config) { c.ID = "b" }}, change...)...)
	c := &fakeCopies{n: n}
	n.engine.Reset(42)
	n.receivers = stream.NewReceivers(n.streamConfig(), func(string) stream.Taker { return c }) // no stream comes yet
	_ = n.cfg.Group.Each(func(*netloop.Loop) {})
	return n, c
}

// contents is all that a node holds: what an effect of each key would say.
func contents(n *Node) map[string]string {
	all := make(map[string]string)
	now := n.cfg.Group.UnixMilli()
	for p := range uint16(ring.Partitions) {
		for at, done := uint64(0), false; !done; {
			at, done = n.engine.Walk(p, at, 100, now, func(i engine.Item) bool {
				expires := "never"
				if i.ExpireAt() != 0 {
					expires = "expires"
				}
				all[string(i.Key())] = fmt.Sprintf("%d %s %s", i.Type(), expires, i.Value())
				return true
			})
		}
	}
	return all
}

// sameContents fails if two nodes do not hold the same.
func sameContents(t testing.TB, a, b *Node) {
	t.Helper()
	want, got := contents(a), contents(b)
	wrong := 0
	for key, value := range want {
		if got[key] != value {
			if wrong++; wrong <= 3 {
				t.Errorf("%q is %.60q (%d), want %.60q (%d)", key, got[key], len(got[key]), value, len(value))
			}
		}
	}
	for key := range got {
		if _, there := want[key]; !there {
			if wrong++; wrong <= 3 {
				t.Errorf("%q should not be there", key)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d keys differ", wrong, len(want))
	}
}

func syncAll(s *stream.Sender) {
	for p := range uint16(ring.Partitions) {
		s.Sync(p, 1)
	}
}

// settle waits until all partitions are whole at the receiver, and all is acknowledged.
func settle(t testing.TB, s *stream.Sender) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		err := s.Flush(ctx)
		cancel()
		at := s.Progress()
		unfinished := at.Unfinished + at.Owed
		if err == nil && unfinished == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in sync after a minute: %d partitions unfinished, flush: %v", unfinished, err)
		}
		time.Sleep(time.Millisecond)
	}
	flushed(t, s)
}

func TestStreamSnapshotAndChanges(t *testing.T) {
	a, b := startNode(t), (*Node)(nil)
	b, copies := startReceiver(t)
	c := dial(t, a.Addr())
	for i := range 2000 {
		c.want(fmt.Sprintf("SET k%d v%d", i, i), "OK")
	}
	big := bytes.Repeat([]byte("large"), 60000)
	c.sendArgs([]byte("SET"), []byte("big"), big)
	c.read()
	s := a.senders.To(memberOf(b))
	syncAll(s)
	for i := range 2000 {
		c.want(fmt.Sprintf("SET k%d w%d EX 1000", i*2, i), "OK")
	}
	c.want("DEL k1", "(integer) 1")
	c.sendArgs([]byte("SET"), []byte("big2"), big)
	c.read()
	c.want("APPEND big more", "(integer) 300004")
	settle(t, s)
	if n := copies.count(replica.MarkSynced); n != ring.Partitions {
		t.Errorf("%d partitions are in sync, want all", n)
	}
	sameContents(t, a, b)
	c.want("SET after sync", "OK")
	settle(t, s)
	sameContents(t, a, b)
	if s.Progress().Resyncs != 0 {
		t.Errorf("%d partitions were sent again", s.Progress().Resyncs)
	}
}

// A copy that was handed over with a seal goes on under a new owner that has the same; another one
// is refused and sent anew.
func TestStreamHandsOverAndContinues(t *testing.T) {
	a := startNode(t)
	b, copies := startReceiver(t)
	b.SetTable(soleTable(b))
	c := dial(t, a.Addr())
	c.want("SET key one", "OK")
	p := ring.PartitionOf([]byte("key"))
	s := a.senders.To(memberOf(b))
	s.Sync(p, 1)
	settle(t, s)
	s.Hand(p, 77, true)
	c.want("SET key two", "OK") // behind the mark: not fed
	flushed(t, s)
	copies.wantHanded(t, p, 77)
	d := dial(t, b.Addr())
	d.want("GET key", "\"one\"")

	s.Resume(p, 1, 77)
	c.want("SET key three", "OK")
	flushed(t, s)
	d.want("GET key", "\"three\"")
	s.Hand(p, 78, true)
	s.Resume(p, 1, 79) // not what was handed
	c.want("SET key four", "OK")
	eventually(t, "the copy is sent anew", func() bool { return s.Progress().Resyncs == 1 })
	settle(t, s)
	d.want("GET key", "\"four\"")

	s.Stop(p)
	c.want("SET key five", "OK")
	flushed(t, s)
	d.want("GET key", "(nil)") // it has been told that its copy is void
	s.Close()
	if err := s.Flush(context.Background()); err == nil {
		t.Error("a closed stream is flushed")
	}
}

// flushed waits until the receiver has all, and what is handed over.
func flushed(t testing.TB, s *stream.Sender) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, flush := range []func(context.Context) error{s.FlushHanded, s.Flush} {
		if err := flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// What is no batch, or not the next one, ends the connection and changes nothing.
func TestStreamRefusesGarbage(t *testing.T) {
	b, copies := startReceiver(t)
	opener := dial(t, b.Addr())
	opener.want("DUNLIN PEER 1 \"\"", "OK")
	opener.want("DUNLIN STREAM a 9", "(integer) 0")
	copies.takeAll()
	if err := put(b, "key", "old", engine.TypeString); err != nil {
		t.Fatal(err)
	}
	before := contents(b)
	txn := b.engine.Lock(ring.PartitionOf([]byte("gone")), 1)
	del := txn.AppendEffect(nil, []byte("key")) // in a partition where it is not: a deletion
	txn.Unlock()
	for _, test := range []struct{ why, want string }{
		{"DUNLIN EFFECTS 2 1 \"\"", "ERR " + stream.ErrGap.Error()},
		{"DUNLIN EFFECTS x 1 \"\"", "ERR " + stream.ErrMalformed.Error()},
		{"DUNLIN EFFECTS 1 x \"\"", "ERR " + stream.ErrMalformed.Error()},
		{"DUNLIN EFFECTS 1 1 garbage", "ERR " + stream.ErrMalformed.Error()},
		{`DUNLIN EFFECTS 1 1 "\x00\x00\x00\x00\x7c\x00\x00\x00"`, "ERR unknown effect: kind 31, the highest known is 10"},
		{"DUNLIN VALUE 1 1 65536 k 0 1 0 100000 0 piece", "ERR " + stream.ErrMalformed.Error()},
		{"DUNLIN VALUE 1 1 5 k 0 9 0 100000 0 piece", "ERR " + stream.ErrMalformed.Error()},
		{"DUNLIN VALUE 1 1 5 k 0 1 0 100000 50 piece", "ERR " + stream.ErrMalformed.Error()},
		{"DUNLIN VALUE 1 1 5 k 0 1 0 3 0 piece", "ERR " + stream.ErrMalformed.Error()},
		{"DUNLIN STREAM a zero", "ERR " + stream.ErrMalformed.Error()},
	} {
		c := dial(t, b.Addr())
		c.want("DUNLIN PEER 1 \"\"", "OK")
		c.want("DUNLIN STREAM a 9", "(integer) 0")
		c.want(test.why, "(error) "+test.want)
		if c.read() != nil {
			t.Errorf("%s does not end the connection", test.why)
		}
	}
	c := dial(t, b.Addr())
	c.want("DUNLIN PEER 1 \"\"", "OK")
	c.want("DUNLIN EFFECTS 1 1 \"\"", "(error) ERR "+stream.ErrNotOpen.Error())
	c = dial(t, b.Addr())
	c.want("DUNLIN PEER 1 \"\"", "OK")
	c.want("DUNLIN STREAM a 9", "(integer) 0")
	mangled := append(bytes.Clone(del), "rest"...)
	c.sendArgs([]byte("DUNLIN"), []byte("EFFECTS"), []byte("1"), []byte("1"), mangled)
	if got := c.next(); got != "(error) ERR "+stream.ErrMalformed.Error() {
		t.Errorf("a batch with a torn effect is answered %s", got)
	}
	if after := contents(b); len(after) != len(before) || after["key"] != before["key"] {
		t.Errorf("the contents are %v, want %v", after, before)
	}
}

// The last connection that opened a stream has it; a batch is applied once.
func TestStreamBelongsToOneConnection(t *testing.T) {
	b, copies := startReceiver(t)
	old := dial(t, b.Addr())
	old.want("DUNLIN PEER 1 \"\"", "OK")
	old.want("DUNLIN STREAM a 9", "(integer) 0")
	old.want("DUNLIN EFFECTS 1 1 \"\"", "(integer) 1")
	c := dial(t, b.Addr())
	c.want("DUNLIN PEER 1 \"\"", "OK")
	c.want("DUNLIN STREAM a 9", "(integer) 1")
	c.want("DUNLIN EFFECTS 1 1 \"\"", "(integer) 1")
	old.want("DUNLIN EFFECTS 2 1 \"\"", "(error) ERR "+stream.ErrNotOpen.Error())
	c.want("DUNLIN EFFECTS 2 1 \"\"", "(integer) 2")
	if n := copies.voided(); n != 1 {
		t.Errorf("copies were given up %d times, want once, for the first generation", n)
	}
	c.want("DUNLIN STREAM a 10", "(integer) 0")
	if n := copies.voided(); n != 2 {
		t.Errorf("copies were given up %d times, want twice", n)
	}
}

// What is to be handed over overtakes all other snapshots, whatever their rate: commands wait for
// it.
func TestHandOverOvertakesSnapshots(t *testing.T) {
	a := startNode(t, func(c *Config) { c.MoveRate = 20 << 10 })
	b, copies := startReceiver(t)
	b.SetTable(soleTable(b))
	c := dial(t, a.Addr())
	s := a.senders.To(memberOf(b))
	var last uint16
	for i := range 60 {
		key := fmt.Sprint("key", i)
		c.wantBig("SET "+key+" BIG", bigValue(30_000, 1), "OK")
		last = ring.PartitionOf([]byte(key))
		s.Sync(last, 1)
	}
	s.Hand(last, 77, true)
	flushed(t, s) // all at their rate would take more than a minute
	copies.wantHanded(t, last, 77)
	if n := s.Progress().Waiting; n < 30 {
		t.Errorf("only %d snapshots are still to be taken", n)
	}
}
