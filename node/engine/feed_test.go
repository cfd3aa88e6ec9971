package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

const testReceiver Receiver = 3

// takesAll admits every partition and remembers the marks.
type takesAll struct{ marks []testMark }

type testMark struct {
	p uint16
	m Mark
}

func (*takesAll) Admits(uint16) bool        { return true }
func (t *takesAll) Marked(p uint16, m Mark) { t.marks = append(t.marks, testMark{p, m}) }

// follow brings a copy up to date: it collects all logs of r, in pieces, and applies them. Large
// values are taken from the owner as they are by then, as a sender does.
func follow(tb testing.TB, owner, replica *Engine, r Receiver, shift, now int64, t Taker) {
	tb.Helper()
	var buf []byte
	for i := range owner.Shards() {
		for more := true; more; {
			buf, more = owner.Collect(r, i, buf[:0], 1<<10)
			applyPiece(tb, owner, replica, buf, shift, now, t)
		}
	}
}

func applyPiece(tb testing.TB, owner, replica *Engine, piece []byte, shift, now int64, t Taker) {
	tb.Helper()
	kind, p, key, size := NextEffect(piece)
	if kind != EffectLarge {
		if err := replica.Apply(piece, shift, now, t); err != nil {
			tb.Fatal(err)
		}
		return
	}
	if size != len(piece) {
		tb.Fatalf("a large effect of %d bytes comes in a piece of %d", size, len(piece))
	}
	o := owner.Lock(p, now-shift)
	item, found := o.Peek(key)
	pin, large := Pin{}, false
	if found {
		pin, large = o.Pin(item)
	}
	instead := o.AppendEffect(nil, key)
	o.Unlock()
	if !large {
		if err := replica.Apply(instead, shift, now, t); err != nil {
			tb.Fatal(err)
		}
		return
	}
	defer pin.Release()
	if !t.Admits(PartitionOf(p)) {
		return
	}
	c := replica.Lock(p, now)
	defer c.Unlock()
	if err := c.Set(key, pin.Value(), item.Type(), ShiftExpiry(item.ExpireAt(), shift)); err != nil {
		c.Delete(key)
		if !errors.Is(err, ErrMemory) {
			tb.Fatal(err)
		}
	}
}

// contents are the keys of a partition.
func contents(e *Engine, p uint16, now, shift int64) map[string]modelValue {
	has := map[string]modelValue{}
	for cursor, done := uint64(0), false; !done; {
		cursor, done = e.Walk(p, cursor, 100, now, func(item Item) bool {
			has[string(item.Key())] = modelValue{string(item.Value()), item.Type(), ShiftExpiry(item.ExpireAt(), shift)}
			return true
		})
	}
	return has
}

// sameContents compares a partition at the owner with its copy.
func sameContents(tb testing.TB, owner, replica *Engine, p uint16, shift, now int64) {
	tb.Helper()
	want, got := contents(owner, p, now-shift, shift), contents(replica, p, now, 0)
	for key, w := range want {
		if g, ok := got[key]; !ok || g != w {
			tb.Fatalf("section %d: %q is %.40q of type %d, expiring at %d, there: %t; want %.40q of %d, %d",
				p, key, g.value, g.typ, g.expireAt, ok, w.value, w.typ, w.expireAt)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			tb.Fatalf("section %d: the copy has %q, which is gone", p, key)
		}
	}
}

func settingTo(t *testing.T, key, value string, at int64) func(Txn) {
	return func(x Txn) {
		if err := x.Set([]byte(key), []byte(value), TypeString, at); err != nil {
			t.Error(err)
		}
	}
}

// resizingTo returns what gives a value n bytes, all of them n.
func resizingTo(t *testing.T, key string, n int) func(Txn) {
	return func(x Txn) {
		view, err := x.Resize([]byte(key), n)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range view {
			view[i] = byte(n)
		}
	}
}

// Everything that happens to a key of a fed partition is told, in order, between the marks; what
// happens to others is not.
func TestFeed(t *testing.T) {
	owner, replica := open(t, Config{MaxBytes: 64 << 20, Shards: 4}), open(t, Config{MaxBytes: 64 << 20, Shards: 2})
	const p, now, shift = 9, 1_000_000, 500
	woken := 0
	owner.OpenFeed(testReceiver, func() { woken++ })
	mustSet(t, owner, p, "before", []byte("1"))
	mustSet(t, owner, p+4, "other", []byte("1"))
	owner.Feed(p, testReceiver, Mark{1, 7})
	if woken != 1 {
		t.Errorf("woken %d times by the first effect", woken)
	}
	taker := &takesAll{}
	step := func(what string, f func(Txn)) {
		t.Helper()
		with(owner, p, now, f)
		follow(t, owner, replica, testReceiver, shift, now+shift, taker)
		got, want := contents(replica, p, now+shift, 0), contents(owner, p, now, shift)
		delete(want, "before")
		if len(got) != len(want) {
			t.Fatalf("%s: the copy has %v, want %v", what, got, want)
		}
		for key := range want {
			if got[key] != want[key] {
				t.Fatalf("%s: %q is %v, want %v", what, key, got[key], want[key])
			}
		}
	}
	set := func(key, value string, at int64) func(Txn) { return settingTo(t, key, value, at) }
	resize := func(n int) func(Txn) { return resizingTo(t, "a", n) }
	step("set", set("a", "1", 0))
	step("set in place", set("a", "2", 0))
	step("set longer", set("a", string(make([]byte, 500)), now+1000))
	step("set a hash", func(x Txn) { _ = x.Set([]byte("h"), []byte("hash"), TypeHash, 0) })
	step("resize in place", resize(490))
	step("resize", resize(3000))
	step("resize within", func(x Txn) { resize(10)(x.Within()); x.Within().Unlock() })
	step("resize, then others", func(x Txn) { resize(20)(x); set("b", "b", now+1)(x); resize(21)(x); x.Delete([]byte("h")) })
	step("expire", func(x Txn) { x.SetExpire([]byte("a"), now+7) })
	step("first expiry", func(x Txn) { set("c", "c", 0)(x); x.SetExpire([]byte("c"), now+9) })
	step("large", set("a", string(make([]byte, 200_000)), now+99))
	step("resize large", resize(210_000))
	step("large to small", resize(100))
	step("delete", func(x Txn) { x.Delete([]byte("a")) })
	step("nothing", func(x Txn) { x.Delete([]byte("a")); x.Find([]byte("b")) })
	with(owner, p, now, func(x Txn) { set("e", "soon", now+1)(x) })
	owner.Sweep(now+1, 1000)
	step("expired", func(Txn) {})
	owner.MarkFeed(p+4, testReceiver, Mark{9, 9}) // not fed
	owner.Drop(p)
	step("dropped", set("last", "1", 0))
	owner.Unfeed(p, testReceiver, Mark{2, 1 << 60})
	with(owner, p, now, set("missed", "1", 0))
	follow(t, owner, replica, testReceiver, shift, now+shift, taker)
	if got := contents(replica, p, now, 0); len(got) != 1 {
		t.Errorf("the copy has %v", got)
	}
	if want := fmt.Sprint([]testMark{{p, Mark{1, 7}}, {p, Mark{2, 1 << 60}}}); fmt.Sprint(taker.marks) != want {
		t.Errorf("got the marks %v, want %v", taker.marks, want)
	}
	if got := contents(replica, p+4, now, 0); len(got) != 0 {
		t.Errorf("what is not fed came: %v", got)
	}
	owner.CloseFeed(testReceiver)
	if n := owner.Stats().Feeds; n != 0 {
		t.Errorf("%d bytes are left of the logs", n)
	}
	owner.checkSums(t)
}

// feedModel compares a copy with its owner, on which a model does whatever there is to do.
type feedModel struct {
	*model
	replica *Engine
	shift   int64
	cursor  [modelPartitions]uint64 // of each partition's snapshot
	synced  [modelPartitions]bool
	resyncs int
}

const (
	feedBegin   = 1
	aheadMillis = 3_600_000
)

func (f *feedModel) Admits(uint16) bool { return true }

func (f *feedModel) Marked(p uint16, m Mark) {
	if m.Kind == feedBegin {
		f.replica.Drop(p)
	}
}

func (f *feedModel) begin(p uint16) {
	f.e.Feed(p, testReceiver, Mark{Kind: feedBegin})
	f.cursor[p], f.synced[p] = 0, false
}

// goOn brings the copy forward, by some of what is logged or by a piece of a snapshot.
func (f *feedModel) goOn(r *rand.Rand) {
	for _, p := range f.e.Overflowed(testReceiver, nil) {
		f.begin(p)
		f.resyncs++
	}
	if p := uint16(r.IntN(modelPartitions)); !f.synced[p] {
		f.cursor[p], f.synced[p] = f.e.Snapshot(p, testReceiver, f.cursor[p], 1+r.IntN(4000), f.now)
	}
	buf, _ := f.e.Collect(testReceiver, r.IntN(f.e.Shards()), nil, 1+r.IntN(10_000))
	applyPiece(f.tb, f.e, f.replica, buf, f.shift, f.now+f.shift, f)
}

// compare finishes snapshots and logs, and compares all. What is expired goes at the owner first,
// and only there, though the copy's clock is far ahead.
func (f *feedModel) compare() {
	f.tb.Helper()
	f.e.Sweep(f.now, f.e.Pages())
	f.replica.Sweep(f.now+aheadMillis, f.replica.Pages())
	for done := false; !done; {
		for _, p := range f.e.Overflowed(testReceiver, nil) {
			f.begin(p)
			f.resyncs++
		}
		done = true
		for p := range uint16(modelPartitions) {
			for n := 0; n < 4 && !f.synced[p]; n++ {
				f.cursor[p], f.synced[p] = f.e.Snapshot(p, testReceiver, f.cursor[p], 30_000, f.now)
				follow(f.tb, f.e, f.replica, testReceiver, f.shift, f.now+f.shift, f)
			}
			done = done && f.synced[p]
		}
		follow(f.tb, f.e, f.replica, testReceiver, f.shift, f.now+f.shift, f)
		done = done && f.e.Backlog(testReceiver) == 0 && len(f.e.Overflowed(testReceiver, nil)) == 0
	}
	for n := range uint32(modelSections) {
		sameContents(f.tb, f.e, f.replica, modelSection(n), f.shift, f.now+f.shift)
	}
}

// TestExpiredBeforeSnapshot: what has expired when the snapshot comes to it, and is there still, expires at the next
// owner if the partition is moved before that happens. So it is announced, once.
func TestExpiredBeforeSnapshot(t *testing.T) {
	var told []string
	tells := func(name string) Config {
		return Config{MaxBytes: testMin, Shards: 1, Announce: func(_ uint16, key []byte, event Event) {
			if event == Expired {
				told = append(told, name+" "+string(key))
			}
		}}
	}
	before, next := open(t, tells("before")), open(t, tells("next"))
	const p, now = 9, 1_000_000
	for _, key := range []string{"swept", "moved"} {
		with(before, p, now, settingTo(t, key, "v", now+1))
	}
	before.OpenFeed(testReceiver, func() {})
	before.Feed(p, testReceiver, Mark{1, 7})
	next.SetCopy(p, SpareCopy)
	if _, done := before.Snapshot(p, testReceiver, 0, 1<<20, now+5); !done {
		t.Fatal("the snapshot is not done")
	}
	with(before, p, now+5, func(x Txn) { x.Find([]byte("swept")) })
	before.SetCopy(p, PlainCopy)
	before.Unfeed(p, testReceiver, Mark{2, 7})
	follow(t, before, next, testReceiver, 0, now+5, &takesAll{})
	next.SetCopy(p, NoCopy)
	for _, e := range []*Engine{before, next} {
		e.Sweep(now+6, 1000)
	}
	if got, want := fmt.Sprint(told), "[before swept next moved]"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

// At the end of every round the copy holds exactly what the owner does.
func TestFeedModel(t *testing.T) {
	oneGoroutine(t)
	rounds, steps := 5, 4000
	if testing.Short() {
		rounds, steps = 2, 2000
	}
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("to repeat it: -model.seed %d", seed)
	run := func(name string, cfg Config) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &feedModel{model: newModel(t, cfg), replica: open(t, Config{MaxBytes: 1 << 30, Shards: 2, Policy: NoEviction}), shift: 77_777}
			f.e.OpenFeed(testReceiver, func() {})
			r := rand.New(rand.NewPCG(seed, uint64(len(name))))
			for p := range uint16(modelPartitions) {
				f.replica.SetCopy(p, PlainCopy)
				f.begin(p)
			}
			for range rounds {
				for range steps {
					f.step(byte(r.Uint32()), r.Uint32(), r.Uint32())
					if r.IntN(4) == 0 {
						f.goOn(r)
					}
				}
				f.compare()
			}
			f.finish()
			t.Logf("%d partitions overflowed", f.resyncs)
		})
	}
	run("tiny, all keys", Config{MaxBytes: 3 << 20, Shards: 4})
	run("tiny, one shard", Config{MaxBytes: 2 << 20, Shards: 1})
	run("tiny, volatile", Config{MaxBytes: 3 << 20, Shards: 4, Policy: VolatileTTL})
	run("full, no eviction", Config{MaxBytes: 3 << 20, Shards: 4, Policy: NoEviction})
	run("roomy, no eviction", Config{MaxBytes: 1 << 30, Shards: 8, Policy: NoEviction})
}
