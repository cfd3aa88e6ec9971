package node

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/node/stream"
	"github.com/dunlin-cache/dunlin/ring"
)

// gated is a node whose senders get no connection until open is called: nothing is collected from
// its logs.
func gated(t *testing.T) (n *Node, open func()) {
	gate := make(chan struct{})
	n = startNode(t, func(c *Config) {
		c.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			select {
			case <-gate:
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	return n, func() { close(gate) }
}

// shardKeys returns keys of different partitions, all of one shard.
func shardKeys(n *Node, shard, count int) (keys []string) {
	seen := make(map[uint16]bool)
	for i := 0; len(keys) < count; i++ {
		key := fmt.Sprint("key:", i)
		if p := ring.PartitionOf([]byte(key)); int(p)%n.engine.Shards() == shard && !seen[p] {
			seen[p] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// resumeHanded has s feed the partition of key as the copy that was handed over with this seal.
func resumeHanded(s *stream.Sender, copies *fakeCopies, key string, seal uint64) (p uint16) {
	p = ring.PartitionOf([]byte(key))
	copies.mu.Lock()
	copies.states[p], copies.args[p] = replica.MarkHanded, seal
	copies.mu.Unlock()
	s.Resume(p, 1, seal)
	return p
}

// write changes a key of a node so many times.
func write(t *testing.T, n *Node, key string, times int) {
	t.Helper()
	for range times {
		if err := put(n, key, strings.Repeat("v", 1000), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
}

// wantHanded fails unless the last word about p is that it is handed over.
func (c *fakeCopies) wantHanded(t *testing.T, p uint16, seal uint64) {
	t.Helper()
	if kind, arg := c.mark(p); kind != replica.MarkHanded || arg != seal {
		t.Errorf("the last mark is %d %d, want that it is handed over, %d", kind, arg, seal)
	}
}

// The last word of a hand-over is said again, behind a new snapshot, if it is lost with its log: by
// then nothing of that partition is fed.
func TestStreamHandsOverThroughAnOverflow(t *testing.T) {
	a, open := gated(t)
	b, copies := startReceiver(t)
	s := a.senders.To(memberOf(b))
	keys := shardKeys(a, 5, 2)
	p := resumeHanded(s, copies, keys[0], 5)
	resumeHanded(s, copies, keys[1], 5)
	write(t, a, keys[0], 1)
	s.Hand(p, 77, true)
	write(t, a, keys[1], 2500)
	open()
	settle(t, s)
	copies.wantHanded(t, p, 77)
	if s.Progress().Resyncs == 0 {
		t.Error("no log has overflowed")
	}
	sameContents(t, a, b)
}

// The last word of a hand-over is said again if it is lost with a log that was emptied for the sake
// of another receiver's, when nothing at all of its shard was fed any more.
func TestStreamHandsOverThroughAnOthersOverflow(t *testing.T) {
	a, open := gated(t)
	b, copies := startReceiver(t)
	s := a.senders.To(memberOf(b))
	other := a.senders.To(ring.Member{ID: "other", Boot: 1, Addr: "127.0.0.1:1"})
	const shard = 5
	keys := shardKeys(a, shard, 2)
	p := resumeHanded(s, copies, keys[0], 5)
	write(t, a, keys[0], 1800)
	s.Hand(p, 77, true)
	for full := 1; full < shard; full++ { // all logs may have 8 MB, and one 2
		key := shardKeys(a, full, 1)[0]
		other.Resume(ring.PartitionOf([]byte(key)), 1, 5)
		write(t, a, key, 1800)
	}
	other.Resume(ring.PartitionOf([]byte(keys[1])), 1, 5)
	for i := 0; s.Progress().Logged > 0; i++ {
		if i == 1700 {
			t.Fatal("the longer log is not emptied")
		}
		write(t, a, keys[1], 1)
	}
	open()
	settle(t, s)
	copies.wantHanded(t, p, 77)
}

// Who waits for acknowledgements does not wait for what an heir refuses; who hands over does.
func TestFlushDoesNotWaitForHandOvers(t *testing.T) {
	a := startNode(t)
	b, copies := startReceiver(t)
	s := a.senders.To(memberOf(b))
	syncAll(s)
	settle(t, s)
	deny := func(deny bool) {
		copies.mu.Lock()
		defer copies.mu.Unlock()
		copies.deny = deny
	}
	deny(true)
	before := s.Progress().Resyncs
	s.Hand(7, 77, true)
	eventually(t, "it is refused", func() bool { return s.Progress().Resyncs > before })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Flush(ctx); err != nil {
		t.Errorf("what is refused holds up others: %v", err)
	}
	moment, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.FlushHanded(moment); err == nil {
		t.Error("what is refused counts as handed over")
	}
	deny(false)
	if err := s.FlushHanded(ctx); err != nil {
		t.Error(err)
	}
	copies.wantHanded(t, 7, 77)
}

// What the receiver has refused, and could not say before its connection broke, is not taken for
// handed over when the stream goes on.
func TestStreamHandsOverThroughALostRefusal(t *testing.T) {
	a, b := startNode(t), startBare(t, func(c *Config) { c.ID = "b" }) // without a table it takes no copies
	r := newRelay(t, b.Addr())
	s := a.senders.To(r.behind(b))
	flushed(t, s)
	r.set(func() { r.deaf = true })
	s.Sync(7, 1)
	s.Hand(7, 77, true)
	logged := uint64(0) // batches made when the word was in the log or behind it
	eventually(t, "the word is refused", func() bool {
		if at := s.Progress(); logged == 0 && at.Unfinished == 0 && at.Logged == 0 {
			logged = at.Made
		}
		return logged != 0 && b.receivers.Applied(a.name()) > logged+1
	})
	r.cut()
	r.set(func() { r.deaf = false })
	eventually(t, "the word is judged", func() bool {
		at := s.Progress()
		return at.Owed == 0 || at.Resyncs > 0
	})
	if s.Progress().Resyncs == 0 {
		t.Error("what was refused counts as handed over")
	}
}

// A stream to a node outside the table that only a hand-over kept ends with it, though others go
// on.
func TestStreamEndsWithItsHandOver(t *testing.T) {
	a, _ := gated(t)
	gone, other := ring.Member{ID: "gone", Boot: 1, Addr: "127.0.0.1:1"}, ring.Member{ID: "other", Boot: 1, Addr: "127.0.0.1:1"}
	three := altered(soleTable(a), func(t *ring.Table) {
		t.Nodes, t.Joined = append(t.Nodes, gone, other), append(t.Joined, t.Epoch, t.Epoch)
		t.Follower[7], t.Follower[8] = 1, 2
	})
	v := ownership.None.Next(three, a.cfg.ID, a.cfg.Boot).WithGained()
	a.tableMu.Lock()
	a.refeedLocked(v, nil)
	for _, lose := range []func(*ring.Table){
		func(t *ring.Table) { t.Owner[7], t.Follower[7] = 1, ring.NoNode },
		func(t *ring.Table) { t.Owner[8], t.Follower[8] = 2, ring.NoNode },
		func(t *ring.Table) { t.Nodes, t.Joined, t.Owner = t.Nodes[:1], t.Joined[:1], [ring.Partitions]uint16{} },
	} {
		next := v.Next(altered(v.Table, lose), a.cfg.ID, a.cfg.Boot)
		a.view.Store(next)
		lost := a.feeding.HandOver(v, next, false, newSeal)
		a.actFeedingLocked()
		if len(lost.Heirs) > 0 {
			h := &handOver{HandOver: lost}
			h.ctx, h.end = context.WithCancel(t.Context())
			a.handOvers[uint64(len(a.handOvers)+1)] = h
		}
		a.refeedLocked(next, nil)
		v = next
	}
	s := a.fedBy[gone.Name()]
	if s == nil || len(a.handOvers) != 2 {
		t.Fatalf("the stream is %v, with %d hand-overs", s, len(a.handOvers))
	}
	a.finishHandOverLocked(1)
	kept := a.fedBy[other.Name()]
	a.tableMu.Unlock()
	if !s.Progress().Closed {
		t.Error("the stream goes on without its hand-over")
	}
	if kept == nil || kept.Progress().Closed {
		t.Error("the other hand-over's stream has ended, too")
	}
}
