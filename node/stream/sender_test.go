package stream

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// newConfig returns a node's part of streams: an engine, jobs that end with the test, and no way to
// another node.
func newConfig(t *testing.T) *Config { return newConfigWith(t, nil) }

// newConfigWith is newConfig with types of values that may have parts.
func newConfigWith(t *testing.T, forms map[engine.Type]engine.Form) *Config {
	t.Helper()
	e, err := engine.New(engine.Config{MaxBytes: 64 << 20, Shards: 16, Forms: forms})
	if err != nil {
		t.Fatal(err)
	}
	var jobs sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		jobs.Wait()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	begun := time.Now()
	return &Config{
		Window: func() int { return replica.WindowBytes }, Charge: e.Charge, Refund: e.Refund,
		Engine: e, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Context: ctx, Go: jobs.Go,
		Monotonic: func() time.Duration { return time.Since(begun) },
		UnixMilli: func() int64 { return time.Now().UnixMilli() },
		Admits: func(typ engine.Type, _ []byte) error {
			if typ == engine.TypeString || forms[typ].Apply != nil {
				return nil
			}
			return engine.UnknownEffect{Kind: engine.EffectSet, Type: typ}
		},
		Strained: func() bool { return false }, TellsStrain: func() bool { return true },
		Name: "a-1", Boot: 1,
		// The tests drive the senders. So their goroutines do nothing before the end, however long a test takes:
		// replica.StreamPatience does not end this attempt.
		Dialer: func(context.Context, string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
}

// other is a node that cannot be reached.
var other = ring.Member{ID: "other", Boot: 1, Addr: "127.0.0.1:1"}

// shardKeys returns keys of different partitions, all of one shard.
func shardKeys(e *engine.Engine, shard, count int) (keys []string) {
	seen := make(map[uint16]bool)
	for i := 0; len(keys) < count; i++ {
		key := fmt.Sprint("key:", i)
		if p := ring.PartitionOf([]byte(key)); int(p)%e.Shards() == shard && !seen[p] {
			seen[p] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// A log that overflows while its sender collects has lost what was in it, though it is found empty.
func TestHandOverThroughAnOverflowInARound(t *testing.T) {
	cfg := newConfig(t)
	s := NewSenders(cfg).To(other)
	first, second := shardKeys(cfg.Engine, 0, 1)[0], shardKeys(cfg.Engine, 1, 2)
	for _, key := range append(second, first) {
		s.Resume(ring.PartitionOf([]byte(key)), 1, 5)
	}
	s.Hand(ring.PartitionOf([]byte(second[0])), 77, true)
	// The test makes a round while there is no connection. The first shard's lock stops it.
	txn := cfg.Engine.Lock(ring.PartitionOf([]byte(first)), cfg.UnixMilli())
	rounded := make(chan struct{})
	go func() { defer close(rounded); s.round() }()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		begun := s.machine.Collections() > 0
		s.mu.Unlock()
		if begun {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the round has not begun in 20 s")
		}
	}
	value := []byte(strings.Repeat("v", 1000))
	for range 2500 {
		change := cfg.Engine.Lock(ring.PartitionOf([]byte(second[1])), cfg.UnixMilli())
		err := change.Set([]byte(second[1]), value, engine.TypeString, 0)
		change.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	txn.Unlock()
	<-rounded
	s.acknowledged(s.Progress().Made)
	if owed := s.Progress().Owed; owed != 1 {
		t.Errorf("%d partitions are to be handed over, want the one whose last mark is lost", owed)
	}
}

// A mark that arrives on a loop does not wait for a sender that has nothing to hand over of its
// partition, however long the sender's goroutine has the lock.
func TestAbandonTakesNoLock(t *testing.T) {
	s := NewSenders(newConfig(t)).To(other)
	for _, p := range []uint16{7, 64, 71} {
		s.Resume(p, 1, 5)
		s.Hand(p, 77, true)
	}
	s.abandon(7, 77)
	if owed := s.Progress().Owed; owed != 2 {
		t.Fatalf("%d partitions are to be handed over after one was abandoned, want 2", owed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.abandon(7, 77)
		s.abandon(8, 77)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("abandon waits for the lock")
	}
}

// A partition that was handed over and has come back meanwhile is not handed over again.
func TestHandOverIsForgotten(t *testing.T) {
	s := NewSenders(newConfig(t)).To(other)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, feed := range []func(){func() { s.Resume(7, 1, 5) }, func() { s.Sync(7, 1) }} {
		s.Resume(7, 1, 5)
		s.Hand(7, 77, true)
		if err := s.FlushHanded(over); err == nil {
			t.Error("a partition that was never sent counts as handed over")
		}
		feed()
		if err := s.FlushHanded(t.Context()); err != nil {
			t.Error(err)
		}
		s.Stop(7)
		s.mu.Lock()
		s.machine.Collected(true, nil)
		s.actLocked()
		s.mu.Unlock()
		if at := s.Progress(); at.Unfinished > 0 || at.Owed != 0 {
			t.Errorf("%d partitions are fed, %d to be handed over, want none", at.Unfinished, at.Owed)
		}
	}
}

// A node that ends opens no stream, and neither does one that feeds as many nodes as the engine
// can.
func TestSendersAreBounded(t *testing.T) {
	all := NewSenders(newConfig(t))
	open := func(i int) *Sender { return all.To(ring.Member{ID: fmt.Sprint("n", i), Boot: 1, Addr: other.Addr}) }
	first := open(0)
	for i := 1; i < engine.MaxReceivers; i++ {
		open(i)
	}
	if s := open(engine.MaxReceivers); !s.Progress().Closed {
		t.Errorf("%d nodes are fed, the engine can feed %d", len(all.List()), engine.MaxReceivers)
	}
	first.Close()
	<-first.ctx.Done()
	if again := open(1); again != open(1) || len(all.List()) != engine.MaxReceivers-1 {
		t.Errorf("%d senders are open, want %d", len(all.List()), engine.MaxReceivers-1)
	}
	all.Close()
	if !open(0).Progress().Closed {
		t.Error("a node that ends has opened a stream")
	}
}

// fill stores values of 1 kB in a partition.
func fill(t *testing.T, cfg *Config, p uint16, values int) {
	t.Helper()
	for i := range values {
		txn := cfg.Engine.Lock(p, cfg.UnixMilli())
		err := txn.Set(fmt.Append(nil, "key:", i), make([]byte, 1000), engine.TypeString, 0)
		txn.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// While loops are strained, here or at the receiver, a snapshot takes a small share of the time; what
// commands wait for never rests.
func TestSnapshotsRest(t *testing.T) {
	var now atomic.Int64 // by every look at it, 20 µs pass
	cfg := newConfig(t)
	cfg.Monotonic = func() time.Duration { return time.Duration(now.Add(int64(20 * time.Microsecond))) }
	strained := false
	cfg.Strained = func() bool { return strained }
	fill(t, cfg, 7, 2000)
	all := NewSenders(cfg)
	// move returns how long it takes to send the partition to a new node.
	move := func(node int, told, urgent bool) time.Duration {
		s := all.To(ring.Member{ID: fmt.Sprint("n", node), Boot: 1, Addr: other.Addr})
		defer s.Close()
		for range 20 { // the strain is there for a while
			now.Add(int64(10 * time.Millisecond))
			s.rest.Look(cfg.Monotonic(), func() bool { return strained || told })
		}
		s.Sync(7, 1)
		if urgent {
			s.Hand(7, 77, true)
		}
		begun := cfg.Monotonic()
		for s.Progress().Unfinished > 0 {
			if told {
				s.told.Store(int64(cfg.Monotonic()))
			}
			turn := cfg.Monotonic()
			wait := s.round()
			s.rested(turn)
			now.Add(int64(wait))
			s.acknowledged(s.Progress().Made)
			if cfg.Monotonic()-begun > time.Minute {
				t.Fatal("a snapshot of 2 MB takes more than a minute")
			}
		}
		return cfg.Monotonic() - begun
	}
	idle := move(1, false, false)
	if told := move(2, true, false); told < 5*idle {
		t.Errorf("a snapshot takes %v, and %v to a receiver that is strained", idle, told)
	}
	strained = true
	if own := move(3, false, false); own < 5*idle {
		t.Errorf("a snapshot takes %v, and %v while this node is strained", idle, own)
	}
	if urgent := move(4, false, true); urgent > 2*idle {
		t.Errorf("a snapshot takes %v, and %v though commands wait for it", idle, urgent)
	}
}

// The memory of a window is charged while a stream needs it, and given back when the stream is silent.
func TestWindowIsCharged(t *testing.T) {
	cfg := newConfig(t)
	var charged, refused int64
	memory := true
	var s *Sender
	cfg.Charge = func(n int64) bool {
		if !s.mu.TryLock() {
			t.Error("memory is charged while others wait for the sender")
		} else {
			s.mu.Unlock()
		}
		if !memory {
			refused++
			return false
		}
		charged += n
		return true
	}
	cfg.Refund = func(n int64) { charged -= n }
	s = NewSenders(cfg).To(other)
	key := shardKeys(cfg.Engine, 0, 1)[0]
	p := ring.PartitionOf([]byte(key))
	s.Resume(p, 1, 5)
	write := func() {
		t.Helper()
		for range 200 {
			change := cfg.Engine.Lock(p, cfg.UnixMilli())
			err := change.Set([]byte(key), make([]byte, 2000), engine.TypeString, 0)
			change.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if !s.collect() {
				s.starve()
			}
		}
	}
	memory = false
	write()
	if s.window.IsWide() || refused == 0 || s.window.Bytes() > s.window.Most() {
		t.Errorf("without memory the window has %d bytes, want %d at most; it asked %d times", s.window.Bytes(), s.window.Most(), refused)
	}
	memory = true
	write()
	if want := int64(replica.WindowMemory(replica.WindowBytes)); !s.window.IsWide() || charged != want {
		t.Errorf("%d bytes are charged, want %d", charged, want)
	}
	s.acknowledged(s.Progress().Made)
	s.heartbeat()
	if s.window.IsWide() || charged != 0 {
		t.Errorf("%d bytes are charged for a silent stream", charged)
	}
}
