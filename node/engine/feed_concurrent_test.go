package engine

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

const feedUserPartitions = 32

var feedUserDatabases = [3]uint8{0, 1, Databases - 1}

// feedFollower keeps a copy of some partitions up to date, as a sender and its receiver together.
type feedFollower struct {
	t       *testing.T
	e       *Engine
	replica *Engine
	r       Receiver
	now     *atomic.Int64
	stalls  bool        // collects nothing until a log has overflowed
	again   atomic.Bool // a log has overflowed
	cursor  [feedUserPartitions]uint64
	synced  [feedUserPartitions]bool
}

func (f *feedFollower) Admits(uint16) bool { return true }

func (f *feedFollower) Marked(p uint16, _ Mark) { f.replica.Forget(p) }

func (f *feedFollower) begin(p uint16) {
	f.e.Feed(p, f.r, Mark{Kind: feedBegin})
	f.cursor[p], f.synced[p] = 0, false
}

// run follows until the writers are done and the copy is whole.
func (f *feedFollower) run(done *atomic.Bool) {
	f.e.OpenFeed(f.r, func() {})
	for p := range uint16(feedUserPartitions) {
		f.begin(p)
	}
	var buf []byte
	for {
		ended := done.Load()
		for _, p := range f.e.Overflowed(f.r, nil) {
			f.stalls = false
			f.again.Store(true)
			f.begin(p)
		}
		if f.stalls && !ended {
			runtime.Gosched()
			continue
		}
		whole := true
		for p := range uint16(feedUserPartitions) {
			if !f.synced[p] {
				f.cursor[p], f.synced[p] = f.e.Snapshot(p, f.r, f.cursor[p], 2000, f.now.Load())
				whole = false
				break
			}
		}
		for i := range f.e.Shards() {
			buf, _ = f.e.Collect(f.r, i, buf[:0], 16<<10)
			applyPiece(f.t, f.e, f.replica, buf, 0, f.now.Load(), f)
		}
		if ended && whole && f.e.Backlog(f.r) == 0 {
			return
		}
	}
}

// feedUserStep is a transaction of one to three changes.
func feedUserStep(t *testing.T, e *Engine, r *rand.Rand, now *atomic.Int64, buf []byte) {
	p := Section(uint16(r.IntN(feedUserPartitions)), feedUserDatabases[r.IntN(3)])
	switch r.IntN(4000) {
	case 0:
		e.Drop(PartitionOf(p))
		return
	case 1:
		e.Clear(p)
		return
	}
	x := e.Lock(p, now.Add(int64(r.IntN(2))))
	defer x.Unlock()
	at := int64(0)
	if r.IntN(4) == 0 {
		at = now.Load() + int64(r.IntN(2000))
	}
	for range 1 + r.IntN(3) {
		number := uint64(r.IntN(1500))
		key := binary.LittleEndian.AppendUint64(nil, number)
		n := r.IntN(400)
		if r.IntN(200) == 0 {
			n = r.IntN(100_000)
		}
		var err error
		if r.IntN(4) == 0 {
			x = x.Select(feedUserDatabases[r.IntN(3)])
		}
		switch r.IntN(8) {
		case 0:
			x.Delete(key)
		case 1:
			x.SetExpire(key, at)
		case 2:
			var view []byte
			if view, err = x.Resize(key, n); err == nil {
				checkedValue(view, number, r.Uint32())
			}
		default:
			err = x.Set(key, checkedValue(buf[:n], number, r.Uint32()), TypeString, at)
		}
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrMemory) {
			t.Error(err)
		}
	}
}

// TestFeedConcurrently feeds two receivers from an engine that is always full, one of which stands
// still at first and so has to begin again. In the end both have what the owner has.
func TestFeedConcurrently(t *testing.T) {
	steps := 15_000
	if testing.Short() {
		steps = 4_000
	}
	e := open(t, Config{MaxBytes: 6 << 20, Shards: 8})
	var now atomic.Int64
	now.Store(1_000_000)
	var done atomic.Bool
	var writers, followers sync.WaitGroup
	all := [2]*feedFollower{}
	for i := range all {
		all[i] = &feedFollower{t: t, e: e, replica: open(t, Config{MaxBytes: 1 << 30, Shards: 4, Policy: NoEviction}), r: Receiver(i * 100), now: &now, stalls: i == 1}
		followers.Go(func() { all[i].run(&done) })
	}
	for u := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(11, uint64(u)))
			buf := make([]byte, 100_000)
			// The one that stands still may not have begun yet, on a busy machine.
			for i := 0; i < steps || !all[1].again.Load() && i < 100*steps; i++ {
				feedUserStep(t, e, r, &now, buf)
				if i%500 == 0 {
					e.Sweep(now.Load(), 1000)
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	followers.Wait()
	for _, f := range all {
		for p := range uint16(feedUserPartitions) {
			for _, d := range feedUserDatabases {
				sameContents(t, e, f.replica, Section(p, d), 0, now.Load())
			}
		}
	}
	if !all[1].again.Load() {
		t.Error("nothing has overflowed")
	}
	if e.Stats().Evicted == 0 {
		t.Error("nothing was evicted")
	}
	e.checkSums(t)
	for _, f := range all {
		e.CloseFeed(f.r)
	}
	e.checkSums(t)
	if n := e.Stats().Feeds; n != 0 {
		t.Errorf("%d bytes are left of the logs", n)
	}
}

// Without memory for one receiver's log another's, the longest of the shard, is emptied: with the
// last words of what is not fed any more. Nothing tells of these but that a log is lost.
func TestFeedLosesLastWords(t *testing.T) {
	const shards, p = 4, 1
	e := open(t, Config{MaxBytes: 32 << 20, Shards: shards})
	for r := range Receiver(2) {
		e.OpenFeed(r, func() {})
		e.Feed(p+shards*uint16(r), r, Mark{1, 1})
	}
	mustSet(t, e, p, "key", make([]byte, 10_000))
	e.Unfeed(p, 0, Mark{2, 2})
	if e.LostLog(0) {
		t.Error("a log is lost before one has overflowed")
	}
	for e.feeds.take() != 0 {
	}
	mustSet(t, e, p+shards, "key", make([]byte, 5_000))
	if n := e.Backlog(0); n != 0 {
		t.Errorf("%d bytes are left of the longer log", n)
	}
	if got := e.Overflowed(0, nil); len(got) > 0 {
		t.Errorf("the feeds of %v have stopped, which had ended", got)
	}
	if !e.LostLog(0) || e.LostLog(0) || e.LostLog(1) {
		t.Error("it is not told once, and of the one, that a log is lost")
	}
}

// TestFeedOverflow: a log that nobody collects is bounded, and so are all; then their partitions
// are fed no more, and another receiver's go on.
func TestFeedOverflow(t *testing.T) {
	const shards, users = 4, 16
	e := open(t, Config{MaxBytes: 32 << 20, Shards: shards})
	woken := [2]int{}
	for r := range Receiver(2) {
		e.OpenFeed(r, func() { woken[r]++ })
		for p := range uint16(users) {
			e.Feed(p, r, Mark{1, 1})
		}
	}
	var out []byte
	stopped := map[uint16]bool{}
	for i := 0; len(stopped) < users; i++ {
		if i == 1<<20 {
			t.Fatalf("%d partitions have overflowed of %d, with %d bytes", len(stopped), users, e.Backlog(0))
		}
		mustSet(t, e, uint16(i%users), "key", make([]byte, 900))
		for _, p := range e.Overflowed(0, nil) {
			stopped[p] = true
			if e.shardOf(p).feeds.log(0).bytes != 0 {
				t.Fatal("a log that has overflowed has something")
			}
		}
		if n := e.Stats().Feeds; n > int64(e.feeds.most()) {
			t.Fatalf("logs have %d bytes, of %d allowed", n, e.feeds.most())
		}
		out, _ = e.Collect(1, i%shards, out[:0], 10<<10)
	}
	if got := e.Overflowed(1, nil); len(got) > 0 {
		t.Errorf("the feeds of %v to the one who collects have stopped, too", got)
	}
	if woken[0] != 2*shards || woken[1] < shards {
		t.Errorf("woken %d times, at the beginning and the end of each log, and %d times", woken[0], woken[1])
	}
	if n := e.Backlog(0); n != 0 {
		t.Errorf("there are %d bytes for who is fed nothing", n)
	}
	e.MarkFeed(3, 0, Mark{2, 2})
	if next, done := e.Snapshot(3, 0, 0, 1000, 1); !done || next != WalkEnd || e.Backlog(0) != 0 {
		t.Error("what is not fed any more is logged")
	}
	e.Feed(3, 0, Mark{3, 3})
	if next, done := e.Snapshot(3, 0, 0, 1000, 1); !done || next != WalkEnd || e.Backlog(0) < 900 {
		t.Errorf("after the snapshot %d bytes, done: %t", e.Backlog(0), done)
	}
	e.checkSums(t)
}
