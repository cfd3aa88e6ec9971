package engine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"
)

// mustStage stages a whole value.
func mustStage(tb testing.TB, e *Engine, key string, value []byte) Staged {
	tb.Helper()
	st, err := e.Stage(0, []byte(key), len(value))
	if err != nil {
		tb.Fatalf("cannot stage %d bytes: %v", len(value), err)
	}
	for len(value) > 0 {
		n := min(len(value), 100_001)
		if err := st.Write(value[:n]); err != nil {
			tb.Fatalf("cannot write to a staged value: %v", err)
		}
		value = value[n:]
	}
	return st
}

func mustPublish(tb testing.TB, e *Engine, p uint16, st *Staged, expireAt int64) {
	tb.Helper()
	with(e, p, 0, func(t Txn) {
		if err := t.SetStaged(st, TypeString, expireAt); err != nil {
			tb.Fatalf("cannot publish a staged value: %v", err)
		}
	})
}

// pinOf pins the value of a key.
func pinOf(tb testing.TB, e *Engine, p uint16, key string) (pin Pin) {
	tb.Helper()
	with(e, p, 0, func(t Txn) {
		item, _ := t.Find([]byte(key))
		var ok bool
		if pin, ok = t.Pin(item); !ok {
			tb.Fatalf("cannot pin %q", key)
		}
	})
	return pin
}

// settledUsed is Used when all that is gone has been given back.
func (e *Engine) settledUsed() int64 {
	e.large.settle()
	return e.Used()
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i^i>>8^i>>16) + seed
	}
	return b
}

func TestStagedValues(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	mustSet(t, e, 1, "k", []byte("small"))
	for i, n := range []int{100_000, 5 << 20, 5<<20 + 1, 300_000, 9 << 20} {
		value := pattern(n, byte(i))
		st := mustStage(t, e, "k", value)
		if st.Left() != 0 || string(st.Key()) != "k" {
			t.Fatalf("%d bytes are left, the key is %q", st.Left(), st.Key())
		}
		mustPublish(t, e, 1, &st, int64(i%2)*1000)
		with(e, 1, 0, func(x Txn) {
			if item, ok := x.Find([]byte("k")); !ok || item.ExpireAt() != int64(i%2)*1000 || string(item.Key()) != "k" {
				t.Errorf("found %t, %q that expires at %d", ok, item.Key(), item.ExpireAt())
			}
		})
		if got := get(e, 1, "k"); !bytes.Equal(got, value) {
			t.Fatalf("value %d of %d bytes differs", i, n)
		}
		e.checkSums(t)
	}
	with(e, 1, 2000, func(x Txn) {
		if item, ok := x.Find([]byte("k")); !ok || len(item.Value()) != 9<<20 {
			t.Error("a value without expiry has expired")
		}
	})
}

// TestUnfinishedStageLeavesNothing: what was there stays, and every byte comes back.
func TestUnfinishedStageLeavesNothing(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	st := mustStage(t, e, "k", pattern(1<<20, 0))
	mustPublish(t, e, 1, &st, 0)
	again := mustStage(t, e, "k", make([]byte, 10<<20)) // so that the bookkeeping exists
	again.Discard()
	before := e.settledUsed()
	for _, written := range []int{0, 1, 4096, 1 << 20, 10 << 20} {
		st, err := e.Stage(0, []byte("k"), 10<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Write(make([]byte, written/2)); err != nil {
			t.Fatal(err)
		}
		if err := st.Skip(written - written/2); err != nil {
			t.Fatal(err)
		}
		if used := e.settledUsed() - before; used < int64(written) || used > int64(written)+2*osPage {
			t.Errorf("%d bytes are charged for %d of a staged value", used, written)
		}
		st.Discard()
		if used := e.settledUsed(); used != before {
			t.Errorf("%d bytes are used after a discard, %d before", used, before)
		}
	}
	if got := get(e, 1, "k"); len(got) != 1<<20 {
		t.Errorf("the old value has %d bytes", len(got))
	}
	e.checkSums(t)
}

func TestSkippedBytesAreZeros(t *testing.T) {
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1})
	for i := range 20 {
		st, err := e.Stage(0, []byte("k"), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for st.Left() > 0 {
			if err := errors.Join(st.Skip(min(st.Left(), 3000)), st.Write(bytes.Repeat([]byte{7}, min(st.Left(), 50_000)))); err != nil {
				t.Fatal(err)
			}
		}
		mustPublish(t, e, uint16(i%3), &st, 0)
		for j, b := range get(e, uint16(i%3), "k") {
			if want := j%53_000 >= 3000; (b == 7) != want || b != 0 && b != 7 {
				t.Fatalf("round %d: byte %d is %d", i, j, b)
			}
		}
	}
}

// TestStageEvictsForWhatComes: an announcement alone evicts nothing and keeps no memory from others,
// pieces evict what they take, and what could never fit is refused before it evicts anything.
func TestStageEvictsForWhatComes(t *testing.T) {
	oneGoroutine(t)
	const limit = 64 << 20
	e := open(t, Config{MaxBytes: limit, Shards: 4})
	for i := range 2 * limit / 1000 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint(i), make([]byte, 900))
	}
	keys := e.Stats().Keys
	st, err := e.Stage(0, []byte("k"), limit*3/4)
	if err != nil {
		t.Fatal(err)
	}
	if now := e.Stats().Keys; now < keys-100 {
		t.Errorf("%d keys of %d are left for an announcement", now, keys)
	}
	for i := range 10 {
		other, err := e.Stage(0, []byte("other"), limit/2)
		if err != nil {
			t.Fatalf("announcement %d: %v, though nothing has come", i, err)
		}
		defer other.Discard()
	}
	if _, err := e.Stage(0, []byte("other"), limit); !errors.Is(err, ErrNeverFits) {
		t.Errorf("got %v for what does not fit alone, want ErrNeverFits", err)
	}
	piece := make([]byte, 1<<20)
	for st.Left() > 0 {
		if err := st.Write(piece[:min(len(piece), st.Left())]); err != nil {
			t.Fatal(err)
		}
		if used := e.Used(); used > limit {
			t.Fatalf("%d bytes are used of %d", used, limit)
		}
	}
	mustPublish(t, e, 1, &st, 0)
	if st := e.Stats(); st.Keys < keys/8 || st.Keys > keys*3/8 {
		t.Errorf("%d keys of %d are left beside the large value", st.Keys, keys)
	}
	// Large makes room for large, and for small.
	for i := range 5 {
		st := mustStage(t, e, "big", make([]byte, limit*3/4))
		mustPublish(t, e, uint16(2+i), &st, 0)
	}
	for i := range limit / 2000 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint("again", i), make([]byte, 900))
	}
	e.checkSums(t)
}

// TestPinOutlivesItsKey: whatever becomes of a key, its pinned value stays as it is, charged until
// the last release.
func TestPinOutlivesItsKey(t *testing.T) {
	oneGoroutine(t)
	const size = 3 << 20
	fates := map[string]func(e *Engine){
		"overwritten":                func(e *Engine) { mustSet(t, e, 1, "k", make([]byte, size)) },
		"overwritten by a small one": func(e *Engine) { mustSet(t, e, 1, "k", nil) },
		"replaced": func(e *Engine) {
			st := mustStage(t, e, "k", make([]byte, size))
			mustPublish(t, e, 1, &st, 0)
		},
		"resized": func(e *Engine) {
			with(e, 1, 0, func(x Txn) {
				for _, n := range []int{size + 1, size, 100_000, 10} {
					view, err := x.Resize([]byte("k"), n)
					if err != nil {
						t.Fatal(err)
					}
					clear(view)
				}
			})
		},
		"deleted": func(e *Engine) { with(e, 1, 0, func(x Txn) { x.Delete([]byte("k")) }) },
		"evicted": func(e *Engine) {
			for i := range 200_000 {
				mustSet(t, e, uint16(i%Partitions), fmt.Sprint(i), make([]byte, 200))
			}
		},
		"expired": func(e *Engine) {
			with(e, 1, 0, func(x Txn) { x.SetExpire([]byte("k"), 5) })
			with(e, 1, 6, func(x Txn) { x.Find([]byte("k")) })
		},
		"dropped": func(e *Engine) { e.Drop(1) },
		"reset":   func(e *Engine) { e.Reset(9) },
	}
	for fate, f := range fates {
		t.Run(fate, func(t *testing.T) {
			e := open(t, Config{MaxBytes: 16 << 20, Shards: 4})
			value := pattern(size, 1)
			mustSet(t, e, 1, "k", value)
			first, second := pinOf(t, e, 1, "k"), pinOf(t, e, 1, "k")
			f(e)
			other := mustStage(t, e, "other", make([]byte, size)) // wants an extent of the same size
			if !bytes.Equal(first.Value(), value) {
				t.Error("the pinned value has changed")
			}
			other.Discard()
			first.Release()
			e.checkSums(t)
			if left := e.Stats().Leaving; left != largeCost(size+1) {
				t.Errorf("%d bytes are charged for a pinned value of %d", left, size)
			}
			if !bytes.Equal(second.Value(), value) {
				t.Error("the value has changed that is still pinned")
			}
			second.Release()
			e.checkSums(t)
			if left := e.Stats().Leaving; left != 0 {
				t.Errorf("%d bytes are charged for a value that nothing pins", left)
			}
		})
	}
}

func TestPinHoldsItsOwnItemOnly(t *testing.T) {
	e := open(t, Config{MaxBytes: 16 << 20, Shards: 1})
	value := pattern(1<<20, 0)
	mustSet(t, e, 1, "k", value)
	pin := pinOf(t, e, 1, "k")
	defer pin.Release()
	holds := func(key string) (held bool) {
		with(e, 1, 0, func(x Txn) {
			if item, ok := x.Peek([]byte(key)); ok {
				held = pin.Holds(item)
			}
		})
		return held
	}
	if !holds("k") {
		t.Error("a pin does not hold the item that was pinned")
	}
	mustSet(t, e, 1, "small", []byte("v"))
	mustSet(t, e, 1, "k", value)
	if holds("k") || holds("small") {
		t.Error("a pin holds another value")
	}
	with(e, 1, 0, func(x Txn) {
		item, _ := x.Peek([]byte("small"))
		if _, ok := x.Pin(item); ok {
			t.Error("a small value is pinned")
		}
	})
}

// TestPinsAdd: a pin adds what nobody else had pinned. The pins of several values are too much, and those of one never are.
func TestPinsAdd(t *testing.T) {
	e := open(t, Config{MaxBytes: 32 << 20, Shards: 1})
	const long = 2 << 20
	add := func(keys ...string) (bytes int64) {
		for _, key := range keys {
			pin := pinOf(t, e, 1, key)
			t.Cleanup(pin.Release)
			bytes += pin.Adds()
		}
		return bytes
	}
	for i, room := 0, true; room; i++ {
		mustSet(t, e, 1, fmt.Sprint(i), pattern(long, byte(i)))
		bytes, again := add(fmt.Sprint(i)), add(fmt.Sprint(i), fmt.Sprint(i))
		if bytes < long || again != 0 {
			t.Fatalf("the first pin adds %d bytes, further ones %d", bytes, again)
		}
		if room = e.PinsLeaveRoom(bytes); !e.PinsLeaveRoom(e.Stats().Pinned) {
			t.Error("the only ones are too many")
		}
	}
}

// TestPinOutlivesTheEngine: Close leaves what is pinned, and the last release unmaps it.
func TestPinOutlivesTheEngine(t *testing.T) {
	e, err := New(Config{MaxBytes: 16 << 20, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	value := pattern(1<<20, 0)
	mustSet(t, e, 1, "k", value)
	pin, st := pinOf(t, e, 1, "k"), mustStage(t, e, "k", value)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pin.Value(), value) {
		t.Error("the pinned value has changed")
	}
	l := e.large
	st.Discard()
	if l.mem == nil {
		t.Fatal("the space is gone while something is pinned")
	}
	pin.Release()
	if l.mem != nil || l.table.mem != nil {
		t.Error("the space is still there after the last release")
	}
}

// TestWarmExtents: the memory of one body becomes another's without being given back in between,
// and nothing of the first shows in the second.
func TestWarmExtents(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 1})
	full := bytes.Repeat([]byte{0xFF}, 100_000)
	mustSet(t, e, 1, "k", full)
	used := e.Used()
	remove := func(key string) {
		with(e, 1, 0, func(x Txn) { x.Delete([]byte(key)) })
		e.checkSums(t)
	}
	remove("k")
	if e.large.warmBytes.Load() != largeCost(100_001) || e.Used() != used {
		t.Fatalf("%d bytes are warm, %d used, %d before", e.large.warmBytes.Load(), e.Used(), used)
	}
	for _, n := range []int{100_000, 70_000, 110_000, 66_000, 120_000} { // all in extents of 128 KiB
		mustSet(t, e, 1, "k", full[:5])
		with(e, 1, 0, func(x Txn) {
			view, err := x.Resize([]byte("k"), n)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(view[:5], full[:5]) || bytes.Count(view[5:], []byte{0}) != n-5 {
				t.Errorf("resized to %d bytes: what is new is not zeros", n)
			}
			copy(view, full)
			for i := range view {
				view[i] = 0xFF
			}
		})
		remove("k")
		st, err := e.Stage(0, []byte("s"), n)
		if err == nil {
			err = errors.Join(st.Write(full[:1000]), st.Skip(n-2000), st.Write(full[:1000]))
		}
		if err != nil {
			t.Fatal(err)
		}
		if used := e.Used(); used > 2<<20 {
			t.Errorf("%d bytes are used", used)
		}
		mustPublish(t, e, 1, &st, 0)
		if got := get(e, 1, "s"); bytes.Count(got, []byte{0}) != n-2000 || bytes.Count(got, []byte{0xFF}) != 2000 {
			t.Errorf("staged %d bytes: what was skipped is not zeros", n)
		}
		remove("s")
	}
	// What is warm is there for others.
	for i := range 100_000 {
		mustSet(t, e, 1, fmt.Sprint(i), full[:100])
	}
	if warm := e.large.warmBytes.Load(); warm != 0 {
		t.Errorf("%d bytes are warm in a full engine", warm)
	}
	e.checkSums(t)
}

// TestStagedReplies: a part of a reply counts as long as it is staged or pinned, whichever ends it, and
// its memory serves the next one.
func TestStagedReplies(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1})
	stage := func(n int) Staged {
		t.Helper()
		st, err := e.StageReply(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Write(pattern(n/2, 1)); err != nil {
			t.Fatal(err)
		}
		return st
	}
	counts := func(replies, staged, pinned int64) {
		t.Helper()
		e.large.settle()
		st := e.Stats()
		if e.Replies() != replies || st.Staged != staged || st.Pinned != pinned || st.Leaving != pinned {
			t.Errorf("%d bytes of replies, %d staged, %d pinned, %d leave, want %d, %d, %d, %d",
				e.Replies(), st.Staged, st.Pinned, st.Leaving, replies, staged, pinned, pinned)
		}
	}
	long, short := stage(ReplyPiece), stage(1)
	counts(ReplyPiece+osPage, ReplyPiece+osPage, 0)
	pin := long.Pin()
	counts(ReplyPiece+osPage, osPage, ReplyPiece)
	if !pin.OfReply() || !bytes.Equal(pin.Value(), pattern(ReplyPiece/2, 1)) {
		t.Errorf("%d bytes are pinned, want %d", len(pin.Value()), ReplyPiece/2)
	}
	short.Discard()
	pin.Release()
	counts(0, 0, 0)
	used := e.Used()
	again, smaller := stage(ReplyPiece), stage(ReplyPiece-osPage)
	if more := e.Used() - used; more > ReplyPiece+extentSize {
		t.Errorf("%d bytes more are used: the memory of the first reply is not used again", more)
	}
	smaller.Discard()
	again.Discard()
	counts(0, 0, 0)
	e.checkSums(t)
}

// TestStageReplyWithTxn: whoever has a shard locked can stage a reply, however full the memory is.
// It gets none if that would have to come from its own shard.
func TestStageReplyWithTxn(t *testing.T) {
	for _, shards := range []int{1, 4} {
		e := open(t, Config{MaxBytes: 16 << 20, Shards: shards})
		fillWith(e, 8000)
		done := make(chan error, 1)
		go func() {
			txn := e.Lock(1, 1)
			defer txn.Unlock()
			var staged []Staged
			var err error
			for range 8 {
				var st Staged
				if st, err = e.StageReply(ReplyPiece); err != nil {
					break
				}
				if err = st.Write(make([]byte, ReplyPiece)); err != nil {
					st.Discard()
					break
				}
				staged = append(staged, st)
			}
			for i := range staged {
				staged[i].Discard()
			}
			done <- err
		}()
		select {
		case err := <-done:
			if alone := shards == 1; alone != errors.Is(err, ErrMemory) {
				t.Errorf("%d shards: %v", shards, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("staging a reply waits for the lock of the one who stages it")
		}
	}
}
