package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"
)

// What is no effect is an error, whatever it claims to be; what is before it is applied.
func TestApplyMalformed(t *testing.T) {
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 2})
	word := func(h header) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(h)) }
	good := append(word(e.makeHeader(TypeString, 5, 1, 1, false)), "kv"...)
	if err := e.Apply(good, 0, 1, &takesAll{}); err != nil || string(get(e, 5, "k")) != "v" {
		t.Fatalf("got %v, %q", err, get(e, 5, "k"))
	}
	for name, bad := range map[string][]byte{
		"half a word":               good[:7],
		"cut off":                   good[:9],
		"no value":                  word(e.makeHeader(TypeString, 5, 1, 512<<20, true)),
		"set as a kind":             word(otherEffect(EffectSet, 5, 0)),
		"delta cut off":             append(word(otherEffect(EffectDelta, 5, 1).withRest(2)), "12345678k."...),
		"clear with more":           word(otherEffect(EffectClear, 5, 0).withRest(1)),
		"no kind":                   word(otherEffect(EffectNone, 5, 0)),
		"mark without its argument": word(markEffect(5, Mark{Kind: 1})),
		"large":                     append(word(otherEffect(EffectLarge, 5, 1)), 'k'),
		"delete without key":        word(otherEffect(EffectDelete, 5, 1)),
		"set without database":      append(word(e.makeHeader(TypeString, 5, 0, 1, false)|databaseBit), 'v'),
		"set in database 0":         append(word(e.makeHeader(TypeString, 5, 2, 1, false)|databaseBit), "k\x00v"...),
		"delete in database 16":     append(word(otherEffect(EffectDelete, 5, 2)|databaseBit), "k\x10"...),
		"clear of database 16":      append(word(otherEffect(EffectClear, 5, 1)|databaseBit), 16),
		"clear with a key":          append(word(otherEffect(EffectClear, 5, 2)|databaseBit), "k\x01"...),
		"clear with a name":         append(word(otherEffect(EffectClear, 5, 1)), 'k'),
	} {
		e.Drop(5)
		if err := e.Apply(append(bytes.Clone(good), bad...), 0, 1, &takesAll{}); !errors.Is(err, ErrEffects) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := get(e, 5, "k"); string(got) != "v" {
			t.Errorf("%s: what is before it is %q", name, got)
		}
	}
}

// What a newer node may send is refused by its name, not as if the stream were broken.
func TestApplyUnknown(t *testing.T) {
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 2})
	word := func(h header) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(h)) }
	good := append(word(e.makeHeader(TypeStream, 5, 1, 1, false)), "kv"...)
	for name, c := range map[string]struct {
		effect []byte
		want   UnknownEffect
	}{
		"a type":         {append(word(e.makeHeader(typeElsewhere, 5, 1, 1, false)), "kv"...), UnknownEffect{EffectSet, typeElsewhere}},
		"a unit's flag":  {append(word(otherEffect(EffectUnit, 5, 0)|databaseBit), "12345678"...), UnknownEffect{Kind: EffectUnit}},
		"a kind":         {append(word(otherEffect(numEffects, 5, 1).withRest(3)), "12345678kabc"...), UnknownEffect{Kind: numEffects}},
		"the last kind":  {append(word(otherEffect(kindMask, 5, 0)), "12345678"...), UnknownEffect{Kind: kindMask}},
		"a clear's flag": {word(otherEffect(EffectClear, 5, 0) | expiryBit), UnknownEffect{Kind: EffectClear}},
	} {
		effects := append(bytes.Clone(good), c.effect...)
		var got UnknownEffect
		if err := CheckEffects(effects, nil); !errors.As(err, &got) || got != c.want {
			t.Errorf("%s: checked as %v", name, err)
		}
		if err := e.Apply(effects, 0, 1, &takesAll{}); !errors.As(err, &got) || got != c.want || string(get(e, 5, "k")) != "v" {
			t.Errorf("%s: applied as %v", name, err)
		}
	}
	if err := CheckEffects(good, nil); err != nil {
		t.Errorf("a known type: %v", err)
	}
	if got := (UnknownEffect{Kind: 12}).Error(); got != "unknown effect: kind 12, the highest known is 10" {
		t.Error(got)
	}
}

// Only what is admitted is applied, and marks are told to whom it may concern.
func TestApplyAdmits(t *testing.T) {
	owner, replica := open(t, Config{MaxBytes: 8 << 20, Shards: 1}), open(t, Config{MaxBytes: 8 << 20, Shards: 1})
	owner.OpenFeed(0, func() {})
	for p := range uint16(6) {
		owner.Feed(p, 0, Mark{1, uint64(p)})
		mustSet(t, owner, p, "k", []byte{byte(p)})
	}
	taker := &takesOdd{}
	follow(t, owner, replica, 0, 0, 0, taker)
	for p := range uint16(6) {
		if got := len(get(replica, p, "k")); got != int(p%2) {
			t.Errorf("partition %d: %d bytes", p, got)
		}
	}
	if len(taker.marks) != 6 {
		t.Errorf("got the marks %v", taker.marks)
	}
}

type takesOdd struct{ takesAll }

func (*takesOdd) Admits(p uint16) bool { return p%2 == 1 }

// A copy expires by its own clock, has the owner's uses, and lacks what it has no memory for.
func TestApplySet(t *testing.T) {
	owner, replica := open(t, Config{MaxBytes: 64 << 20, Shards: 1}), open(t, Config{MaxBytes: 2 << 20, Shards: 1, Policy: NoEviction})
	owner.OpenFeed(0, func() {})
	owner.Feed(1, 0, Mark{})
	const now = 1000
	set := func(key, value string, at int64) {
		with(owner, 1, now, func(x Txn) {
			if err := x.Set([]byte(key), []byte(value), TypeString, at); err != nil {
				t.Error(err)
			}
		})
	}
	set("used", "1", 0)
	with(owner, 1, now, func(x Txn) { x.Find([]byte("used")); x.Find([]byte("used")); x.SetExpire([]byte("used"), now+50) })
	set("soon", "1", now+5)
	set("late", "1", math.MaxInt64)
	follow(t, owner, replica, 0, -100, now-95, &takesAll{})
	with(replica, 1, now-95, func(x Txn) {
		if item, ok := x.Peek([]byte("used")); !ok || item.ExpireAt() != now-50 || item.Uses() != 2 {
			t.Errorf("got %d, used %d times, %t", item.ExpireAt(), item.Uses(), ok)
		}
		if _, ok := x.Peek([]byte("soon")); ok {
			t.Error("an expired key is there")
		}
	})
	for i := range byte(200) {
		set("k"+string(i), string(make([]byte, 15_000)), 0)
	}
	set("used", string(make([]byte, 15_000)), 0)
	follow(t, owner, replica, 0, 100, now, &takesAll{})
	with(replica, 1, now, func(x Txn) {
		if _, ok := x.Peek([]byte("used")); ok {
			t.Error("a key is there whose value has no room")
		}
		if item, ok := x.Peek([]byte("late")); !ok || item.ExpireAt() < now {
			t.Errorf("got %t, %d", ok, item.ExpireAt())
		}
	})
}

// FuzzApply: whatever comes, there is an error or not, and no memory is taken but for what is
// there.
func FuzzApply(f *testing.F) {
	owner := open(f, Config{MaxBytes: 8 << 20, Shards: 1})
	owner.OpenFeed(0, func() {})
	owner.Feed(1, 0, Mark{1, 1})
	mustSet(f, owner, 1, "key", []byte("value"))
	with(owner, 1, 0, func(x Txn) { x.SetExpire([]byte("key"), 5); x.Delete([]byte("key")) })
	mustSet(f, owner, 1, "large", make([]byte, 100_000))
	owner.Drop(1)
	for more := true; more; {
		var b []byte
		b, more = owner.Collect(0, 0, nil, 1000)
		f.Add(b, int64(5))
	}
	for _, b := range bagEffects(f) {
		f.Add(b, int64(5))
	}
	e := open(f, Config{MaxBytes: 4 << 20, Shards: 4, Forms: bags()})
	f.Fuzz(func(t *testing.T, b []byte, shift int64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := e.Apply(b, shift, 1, &takesAll{})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10+100*uint64(len(b)) {
			t.Errorf("%d bytes are allocated for %d", n, len(b))
		}
		if known := CheckEffects(b, nil); known != nil && err == nil {
			t.Errorf("applied, although %v", known)
		} else if known == nil && err != nil && !hasParts(b) {
			t.Errorf("whole effects: %v", err)
		}
	})
}

// bagEffects are effects on a value with parts, alone and as a unit.
func bagEffects(tb testing.TB) (all [][]byte) {
	e := open(tb, Config{MaxBytes: 8 << 20, Shards: 1, Forms: bags()})
	e.OpenFeed(0, func() {})
	e.Feed(1, 0, Mark{})
	makeBag(tb, e, 1, "bag", 2, 10)
	with(e, 1, 1, func(x Txn) {
		x.SetExpire([]byte("bag"), 9)
		x.BeginUnit()
		v, _ := bag(x, "bag")
		bagDelete(v, 0)
		bagDelete(v, 1)
	})
	for more := true; more; {
		var b []byte
		b, more = e.Collect(0, 0, nil, 1)
		all = append(all, b)
	}
	return all
}

// hasParts reports whether an effect is on a value with parts. Only those may fail although they
// are whole.
func hasParts(effects []byte) bool {
	for len(effects) > 0 {
		kind, _, _, size := NextEffect(effects)
		if kind >= EffectBegin && kind < EffectUnit || kind == EffectUnit && hasParts(effects[2*wordSize:size]) {
			return true
		}
		effects = effects[size:]
	}
	return false
}

// A receiver applies about as much of a big value under one lock as its sender dumps under one.
func TestChunksAreAppliedOneByOne(t *testing.T) {
	const p = 5
	owner := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	receiver := open(t, Config{MaxBytes: 64 << 20, Shards: 1, Forms: bags()})
	makeBag(t, owner, p, "bag", 3000, 40)
	owner.OpenFeed(testReceiver, func() {})
	owner.Feed(p, testReceiver, Mark{})
	if _, done := owner.Snapshot(p, testReceiver, 0, 1<<20, 1); !done {
		t.Fatal("the log has no room for the snapshot")
	}
	effects, _ := owner.Collect(testReceiver, 0, nil, 1<<20)
	locks := 0
	for ; len(effects) > 0; locks++ {
		left, err := receiver.applySome(effects, 0, 1, &takesAll{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(effects) - len(left); n > 2*chunkSize {
			t.Errorf("%d bytes are applied under one lock", n)
		}
		effects = left
	}
	if !hasBag(receiver, p, "bag") || locks < 10 {
		t.Errorf("the bag is there: %t, after %d locks", hasBag(receiver, p, "bag"), locks)
	}
}
