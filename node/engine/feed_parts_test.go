package engine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// bagTaker admits everything and notes what it lacks.
type bagTaker struct {
	takesAll
	lacks map[string]bool
}

func (t *bagTaker) Lacks(section uint16, key []byte) { t.lacks[bagName(section, string(key))] = true }

// bagName is what the tests call the bag under a key.
func bagName(section uint16, key string) string {
	if d := DatabaseOf(section); d != 0 {
		return fmt.Sprint(d, "/", key)
	}
	return key
}

// bagDatabase is a database for bags beside 0.
const bagDatabase = 3

// bagFeed has an owner of bags and a follower.
type bagFeed struct {
	tb             testing.TB
	owner, replica *Engine
	taker          bagTaker
	r              *rand.Rand
	both           bool // there are bags in bagDatabase too
}

// section is that of a bag of the partition.
func (f *bagFeed) section(p uint16) uint16 {
	if f.both && f.r.IntN(2) == 0 {
		return Section(p, bagDatabase)
	}
	return p
}

func newBagFeed(tb testing.TB, seed uint64) *bagFeed {
	f := &bagFeed{tb: tb, r: rand.New(rand.NewPCG(seed, 1)), taker: bagTaker{lacks: map[string]bool{}}}
	f.owner = open(tb, Config{MaxBytes: 64 << 20, Shards: 2, Forms: bags()})
	f.replica = open(tb, Config{MaxBytes: 64 << 20, Shards: 4, Forms: bags()})
	f.owner.OpenFeed(testReceiver, func() {})
	return f
}

func (f *bagFeed) collect() {
	f.tb.Helper()
	follow(f.tb, f.owner, f.replica, testReceiver, 0, 1, &f.taker)
}

// change does something to one of a few bags.
func (f *bagFeed) change(p uint16) {
	key := fmt.Sprint("bag:", f.r.IntN(4))
	with(f.owner, f.section(p), 1, func(t Txn) {
		v, ok := bag(t, key)
		switch n := f.r.IntN(100); {
		case !ok || n == 0:
			mustBag(f.tb, t, key)
		case n == 1:
			v.Delete()
		case n < 4:
			t.SetExpire([]byte(key), int64(2+f.r.IntN(1000)))
		case n < 30:
			bagDelete(v, uint32(f.r.IntN(1500)))
		default:
			f.set(t, v)
		}
	})
}

// set sets one element, or several as a unit.
func (f *bagFeed) set(t Txn, v Parts) {
	n := 1
	if f.r.IntN(3) == 0 {
		n = 1 + f.r.IntN(5)
		t.BeginUnit()
		defer t.EndUnit()
	}
	for range n {
		value := make([]byte, f.r.IntN(400))
		if f.r.IntN(100) == 0 {
			value = make([]byte, 50_000)
		}
		value = append(value, byte(f.r.Uint32()))
		if err := bagReserve(v, len(value)); err != nil {
			f.tb.Fatal(err)
		}
		if err := bagSet(v, uint32(f.r.IntN(1500)), value); err != nil {
			f.tb.Fatal(err)
		}
	}
}

type bagCopy struct {
	incarnation uint32
	expireAt    int64
	elements    map[uint32]string
}

func (f *bagFeed) contents(e *Engine, p uint16) map[string]bagCopy {
	got := map[string]bagCopy{}
	for _, section := range []uint16{p, Section(p, bagDatabase)} {
		for i := range 4 {
			key := fmt.Sprint("bag:", i)
			with(e, section, 1, func(t Txn) {
				item, found := t.Peek([]byte(key))
				if v, ok := t.Parts(item); found && ok {
					got[bagName(section, key)] = bagCopy{v.Incarnation(), item.ExpireAt(), bagContent(f.tb, v)}
				}
			})
		}
	}
	return got
}

func (f *bagFeed) compare(p uint16) {
	f.tb.Helper()
	want, got := f.contents(f.owner, p), f.contents(f.replica, p)
	if !maps.EqualFunc(want, got, func(a, b bagCopy) bool {
		return a.incarnation == b.incarnation && a.expireAt == b.expireAt && maps.Equal(a.elements, b.elements)
	}) {
		for key := range want {
			f.tb.Errorf("%s: incarnation %d with %d elements, at the follower %d with %d", key, want[key].incarnation, len(want[key].elements), got[key].incarnation, len(got[key].elements))
		}
		f.tb.Fatalf("the follower has %d bags of %d, or others", len(got), len(want))
	}
}

// A follower has what the owner has, if its snapshot is taken between changes, in chunks, and
// changes come as deltas.
func TestFeedParts(t *testing.T) {
	oneGoroutine(t)
	f := newBagFeed(t, 7)
	f.both = true
	const p = 5
	for range 4000 {
		f.change(p)
	}
	f.owner.Feed(p, testReceiver, Mark{Kind: 1})
	for cursor, done := uint64(0), false; !done; {
		cursor, done = f.owner.Snapshot(p, testReceiver, cursor, 20_000, 1)
		for range 20 {
			f.change(p)
		}
		f.collect()
	}
	f.compare(p)
	for range 20 {
		for range 100 {
			f.change(p)
		}
		f.collect()
		f.compare(p)
	}
	f.owner.checkSums(t)
	f.replica.checkSums(t)
	if f.owner.LostLog(testReceiver) || len(f.taker.marks) != 1 {
		t.Errorf("the log overflowed, or marks are lost: %v", f.taker.marks)
	}
}

// Who has another value under the key, or none, is changed by no delta, and says what it lacks.
// What it is sent instead is whole.
func TestFeedPartsLacks(t *testing.T) {
	f := newBagFeed(t, 8)
	const p = 5
	f.owner.Feed(p, testReceiver, Mark{})
	makeBag(t, f.owner, p, "bag:1", 3, 10)
	makeBag(t, f.owner, p, "bag:2", 3, 10)
	f.collect()
	with(f.replica, p, 1, func(x Txn) { x.Delete([]byte("bag:1")) })
	makeBag(t, f.replica, p, "bag:2", 7, 10)
	for _, key := range []string{"bag:1", "bag:2"} {
		with(f.owner, p, 1, func(x Txn) {
			v, _ := bag(x, key)
			bagDelete(v, 1)
		})
	}
	f.collect()
	if !f.taker.lacks["bag:1"] || !f.taker.lacks["bag:2"] || hasBag(f.replica, p, "bag:1") {
		t.Errorf("lacks %v", f.taker.lacks)
	}
	if got := f.contents(f.replica, p)["bag:2"].elements; len(got) != 7 {
		t.Errorf("another value has %d elements", len(got))
	}
	var effects []byte
	for _, key := range []string{"bag:1", "bag:2"} {
		with(f.owner, p, 1, func(x Txn) { effects = x.AppendEffect(effects, []byte(key)) })
	}
	if err := f.replica.Apply(effects, 0, 1, &f.taker); err != nil {
		t.Fatal(err)
	}
	f.compare(p)
}

// Another build may keep less in a value's own bytes, or more. A receiver that took the sender's number would have
// no room for what it keeps itself.
func TestBeginOfAnotherBuild(t *testing.T) {
	f := newBagFeed(t, 9)
	const p, key = 5, "bag:1"
	makeBag(t, f.owner, p, key, 3, 10)
	var effects []byte
	with(f.owner, p, 1, func(x Txn) { effects = x.AppendEffect(nil, []byte(key)) })
	for _, own := range []int{0, bagOwn / 2, 2 * bagOwn} {
		second := partsWordOf(effects)&(1<<ownShift-1) | partsWord(own)<<ownShift
		binary.LittleEndian.PutUint64(effects[wordSize:], uint64(second))
		if err := f.replica.Apply(effects, 0, 1, &f.taker); err != nil {
			t.Fatal(err)
		}
		with(f.replica, p, 1, func(x Txn) {
			if v, ok := bag(x, key); !ok || len(v.Own()) != max(own, bagOwn) || len(bagContent(t, v)) != 3 {
				t.Errorf("of a value with %d own bytes came one: %v, with %d", own, ok, len(v.Own()))
			}
		})
	}
}

// A unit is one effect, whatever it has, and wherever its word lies in the log's blocks. Too large
// a one overflows.
func TestFeedUnit(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	e.OpenFeed(testReceiver, func() {})
	e.Feed(9, testReceiver, Mark{})
	for size := range 200 {
		with(e, 9, 1, func(x Txn) {
			if err := x.Set([]byte("before"), make([]byte, 3900+size), TypeString, 0); err != nil {
				t.Fatal(err)
			}
			x.BeginUnit()
			for i := range 3 {
				if err := x.Set(fmt.Append(nil, i), make([]byte, 50), TypeString, 0); err != nil {
					t.Fatal(err)
				}
			}
			x.Delete([]byte("1"))
		})
		got, more := e.Collect(testReceiver, 0, nil, 1<<20)
		if err := CheckEffects(got, nil); err != nil || more {
			t.Fatalf("size %d: %v, more %t", size, err, more)
		}
		var kinds []EffectKind
		var last int
		for rest := got; len(rest) > 0; rest = rest[last:] {
			var kind EffectKind
			kind, _, _, last = NextEffect(rest)
			kinds = append(kinds, kind)
		}
		if len(kinds) != 2 || kinds[0] != EffectSet || kinds[1] != EffectUnit {
			t.Fatalf("size %d: %v", size, kinds)
		}
	}
	with(e, 9, 1, func(x Txn) {
		x.BeginUnit()
		for i := range 200 {
			if err := x.Set(fmt.Append(nil, i), make([]byte, 4_000), TypeString, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	if lost, overflowed := e.LostLog(testReceiver), e.Overflowed(testReceiver, nil); lost || len(overflowed) != 1 {
		t.Errorf("a unit of 800,000 bytes: lost a log %t, overflowed %v", lost, overflowed)
	}
}

// Nothing in a copy expires by the receiver's clock, which is an hour ahead here. So what changes a
// value at its last moment finds it: its owner may have died when the receiver asks for it anew. The
// value expires when the partition is the receiver's own.
func TestCopiesDoNotExpire(t *testing.T) {
	const p, at, late = 5, 1000, 3_600_000
	for name, change := range map[string]func(x Txn, v Parts){
		"EXPIRE":  func(x Txn, v Parts) { x.SetExpire(v.Key(), 2*late) },
		"PERSIST": func(x Txn, v Parts) { x.SetExpire(v.Key(), 0) },
		"RENAME": func(x Txn, v Parts) {
			if err := x.Rename(v, []byte("renamed"), at); err != nil {
				t.Fatal(err)
			}
			x.SetExpire([]byte("renamed"), 2*late)
			if err := x.Rename(v, []byte("bag"), 2*late); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, kind := range []CopyKind{PlainCopy, SpareCopy} {
			f := newBagFeed(t, 3)
			f.replica.SetCopy(p, kind)
			f.owner.Feed(p, testReceiver, Mark{Kind: 1})
			makeBag(t, f.owner, p, "bag", 10, 100)
			makeBag(t, f.owner, p, "dead", 10, 100)
			with(f.owner, p, 1, func(x Txn) {
				x.SetExpire([]byte("bag"), at)
				x.SetExpire([]byte("dead"), at)
			})
			follow(t, f.owner, f.replica, testReceiver, 0, late, &f.taker)
			f.replica.Sweep(late, f.replica.Pages())
			incarnation := uint32(0)
			with(f.owner, p, at-1, func(x Txn) {
				v, _ := bag(x, "bag")
				incarnation = v.Incarnation()
				change(x, v)
			})
			follow(t, f.owner, f.replica, testReceiver, 0, late, &f.taker)
			f.replica.Sweep(late, f.replica.Pages())
			if len(f.taker.lacks) > 0 {
				t.Errorf("%s: the copy lacks %v", name, f.taker.lacks)
			}
			f.replica.SetCopy(p, NoCopy)
			with(f.replica, p, late, func(x Txn) {
				if v, ok := bag(x, "bag"); !ok || v.Incarnation() != incarnation {
					t.Errorf("%s: the value is there: %t", name, ok)
				}
				if _, ok := bag(x, "dead"); ok {
					t.Errorf("%s: a value that nobody has extended is served", name)
				}
			})
			f.replica.checkSums(t)
		}
	}
}

// When the owner's clock says so, a value of a copy goes.
func TestOwnerExpiresCopies(t *testing.T) {
	const p, at = 5, 1000
	f := newBagFeed(t, 3)
	f.replica.SetCopy(p, SpareCopy)
	f.owner.Feed(p, testReceiver, Mark{Kind: 1})
	makeBag(t, f.owner, p, "bag", 10, 100)
	mustSet(t, f.owner, p, "string", []byte("value"))
	with(f.owner, p, 1, func(x Txn) {
		x.SetExpire([]byte("bag"), at)
		x.SetExpire([]byte("string"), at)
	})
	f.collect()
	if n := f.replica.Count(p); n != 2 {
		t.Fatalf("the copy has %d keys", n)
	}
	f.owner.Sweep(at, f.owner.Pages())
	f.collect()
	if n := f.replica.Count(p); n != 0 {
		t.Errorf("the copy has %d keys after its owner's have expired", n)
	}
	f.wantFreed()
}

// A receiver whose clock is hours off has each expiry by its own clock: of a value that is sent whole, of
// one that gets an expiry, and of one that gets another key.
func TestFeedPartsBetweenClocks(t *testing.T) {
	const p, now, at, hours = 5, 1_000_000_000_000, 1_000_000_001_000, 3 * 3_600_000
	for _, shift := range []int64{hours, -hours} {
		f := newBagFeed(t, 3)
		f.replica.SetCopy(p, SpareCopy)
		makeBag(t, f.owner, p, "sent", 10, 100)
		with(f.owner, p, now, func(x Txn) { x.SetExpire([]byte("sent"), at) })
		f.owner.Feed(p, testReceiver, Mark{Kind: 1})
		f.owner.Snapshot(p, testReceiver, 0, 1<<20, now)
		makeBag(t, f.owner, p, "expires", 10, 100)
		makeBag(t, f.owner, p, "renamed", 10, 100)
		with(f.owner, p, now, func(x Txn) {
			x.SetExpire([]byte("expires"), at+1)
			v, _ := bag(x, "renamed")
			if err := x.Rename(v, []byte("name"), at+2); err != nil {
				t.Fatal(err)
			}
		})
		follow(t, f.owner, f.replica, testReceiver, shift, now+shift, &f.taker)
		with(f.replica, p, now+shift, func(x Txn) {
			for i, key := range []string{"sent", "expires", "name"} {
				item, found := x.Peek([]byte(key))
				if want := int64(at + i + int(shift)); !found || item.ExpireAt() != want {
					t.Errorf("%s is there: %t, and expires at %d, want %d", key, found, item.ExpireAt(), want)
				}
			}
		})
	}
}

// Times inside a value are relative to its base, which alone is shifted to the receiver's clock.
func TestBaseIsShifted(t *testing.T) {
	const p, made, ahead = 5, 1_000_000, 3_600_000
	owner := open(t, Config{MaxBytes: 8 << 20, Shards: 1, Forms: bags()})
	replica := open(t, Config{MaxBytes: 8 << 20, Shards: 1, Forms: bags()})
	baseOf := func(e *Engine, now int64, key string) (base int64) {
		with(e, p, now, func(x Txn) {
			v, ok := bag(x, key)
			if !ok {
				t.Fatalf("%s is not there", key)
			}
			base = v.Base()
		})
		return base
	}
	var effects []byte
	with(owner, p, made, func(x Txn) {
		if err := x.Reserve(Room{Roots: []int{3 + bagOwn, 4 + bagOwn}}); err != nil {
			t.Fatal(err)
		}
		if _, err := newBag(x, []byte("bag"), 0); err != nil {
			t.Fatal(err)
		}
	})
	with(owner, p, made+500, func(x Txn) {
		v, _ := bag(x, "bag")
		_, like, err := x.NewAsideLike(v)
		if err == nil {
			err = x.Rename(like, []byte("copy"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		effects = x.AppendEffect(x.AppendEffect(nil, []byte("bag")), []byte("copy"))
	})
	if err := replica.Apply(effects, ahead, made+500+ahead, &takesAll{}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"bag", "copy"} {
		if here, there := baseOf(owner, made+600, key), baseOf(replica, made+600+ahead, key); here != made || there != made+ahead {
			t.Errorf("%s: base %d, at the receiver %d, want %d and %d", key, here, there, made, made+ahead)
		}
	}
}
