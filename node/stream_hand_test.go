package node

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// gated is a node whose senders get no connection until open is called: nothing is collected from its logs.
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
func resumeHanded(s *sender, copies *fakeCopies, key string, seal uint64) (p uint16) {
	p = ring.PartitionOf([]byte(key))
	copies.mu.Lock()
	copies.states[p], copies.args[p] = markHanded, seal
	copies.mu.Unlock()
	s.resume(p, seal)
	return p
}

// The last word of a hand-over is said again if it is lost with a log that was emptied for the sake of another receiver's, when
// nothing at all of its shard was fed any more.
func TestStreamHandsOverThroughAnOthersOverflow(t *testing.T) {
	a, open := gated(t)
	b, copies := startReceiver(t)
	s := a.sender(memberOf(b))
	other := a.sender(ring.Member{ID: "other", Boot: 1, Addr: "127.0.0.1:1"})
	write := func(key string, times int) {
		for range times {
			if err := put(a, key, strings.Repeat("v", 1000), engine.TypeString); err != nil {
				t.Fatal(err)
			}
		}
	}
	const shard = 5
	keys := shardKeys(a, shard, 2)
	p := resumeHanded(s, copies, keys[0], 5)
	write(keys[0], 1800)
	s.hand(p, 77, true)
	for full := 1; full < shard; full++ { // all logs may have 8 MB, and one 2
		key := shardKeys(a, full, 1)[0]
		other.resume(ring.PartitionOf([]byte(key)), 5)
		write(key, 1800)
	}
	other.resume(ring.PartitionOf([]byte(keys[1])), 5)
	for i := 0; a.engine.Backlog(s.feed) > 0; i++ {
		if i == 1700 {
			t.Fatal("the longer log is not emptied")
		}
		write(keys[1], 1)
	}
	open()
	settle(t, s)
	if kind, arg := copies.mark(p); kind != markHanded || arg != 77 {
		t.Errorf("the last mark is %d %d, want that it is handed over, 77", kind, arg)
	}
}

// A log that overflows while its sender collects has lost what was in it, though it is found empty.
func TestStreamHandsOverThroughAnOverflowInARound(t *testing.T) {
	a, _ := gated(t)
	b, copies := startReceiver(t)
	s := a.sender(memberOf(b))
	first, second := shardKeys(a, 0, 1)[0], shardKeys(a, 1, 2)
	resumeHanded(s, copies, first, 5)
	p := resumeHanded(s, copies, second[0], 5)
	resumeHanded(s, copies, second[1], 5)
	s.hand(p, 77, true)
	go func() { _ = s.flushHanded(t.Context()) }()
	eventually(t, "somebody waits for the hand-over", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.flushes) == 1
	})

	// A round, that of the test while there is no connection, is held in the first shard.
	txn := a.engine.Lock(ring.PartitionOf([]byte(first)), time.Now().UnixMilli())
	rounded := make(chan struct{})
	go func() { defer close(rounded); s.round() }()
	eventually(t, "the round has begun", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.flushes[0].from != 0
	})
	for range 2500 {
		if err := put(a, second[1], strings.Repeat("v", 1000), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	txn.Unlock()
	<-rounded
	s.mu.Lock()
	s.window.acknowledge(s.window.seq)
	s.endFlushesLocked()
	words := len(s.handed)
	s.mu.Unlock()
	if words != 1 {
		t.Errorf("%d last words may not have come, want the one that is lost", words)
	}
}

// Who waits for acknowledgements does not wait for what an heir refuses; who hands over does.
func TestFlushDoesNotWaitForHandOvers(t *testing.T) {
	a := startNode(t)
	b, copies := startReceiver(t)
	s := a.sender(memberOf(b))
	syncAll(s)
	settle(t, s)
	deny := func(deny bool) {
		copies.mu.Lock()
		defer copies.mu.Unlock()
		copies.deny = deny
	}
	deny(true)
	s.hand(7, 77, true)
	eventually(t, "it is refused", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		f := s.fed[7]
		if f == nil || f.tries == 0 {
			return false
		}
		f.tries = math.MinInt // it is not given up
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.flush(ctx); err != nil {
		t.Errorf("what is refused holds up others: %v", err)
	}
	moment, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.flushHanded(moment); err == nil {
		t.Error("what is refused counts as handed over")
	}
	deny(false)
	if err := s.flushHanded(ctx); err != nil {
		t.Error(err)
	}
	if kind, arg := copies.mark(7); kind != markHanded || arg != 77 {
		t.Errorf("the last mark is %d %d, want that it is handed over, 77", kind, arg)
	}
}
