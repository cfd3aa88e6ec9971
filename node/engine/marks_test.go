package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// watched is an engine whose marks and changes are noted.
type watched struct {
	*Engine
	told    []string // "watcher hash", of marks, with " by actor" if there is one
	revoked []string // the keys that have changed, in the order of told
	changed []string // keys
}

func newWatched(t *testing.T, limit int64) *watched {
	w := &watched{}
	w.Engine = open(t, Config{
		MaxBytes: limit, Shards: 8, Policy: AllKeys,
		Revoke: func(m Watch, key []byte, actor uint64) {
			w.told = append(w.told, by(fmt.Sprint(m.Watcher, " ", m.Hash), actor))
			w.revoked = append(w.revoked, string(key))
		},
		Changed: func(key []byte, actor uint64) {
			w.changed = append(w.changed, by(string(key), actor))
		},
	})
	return w
}

func by(s string, actor uint64) string {
	if actor != 0 {
		return fmt.Sprint(s, " by ", actor)
	}
	return s
}

// take returns what was told since the last call.
func (w *watched) take() (told, changed []string) {
	told, changed = w.told, w.changed
	w.told, w.changed, w.revoked = nil, nil, nil
	return told, changed
}

func (w *watched) mark(t *testing.T, p uint16, key string, watcher uint16, hash uint64) {
	t.Helper()
	if !w.Mark(p, []byte(key), Watch{watcher, hash}) {
		t.Fatal("no memory for a mark")
	}
}

// TestMarksTellEveryChange: whatever changes a key tells its marks once, and nothing else does.
func TestMarksTellEveryChange(t *testing.T) {
	const p = 2
	w := newWatched(t, 4<<20)
	key := []byte("k")
	set := func(txn Txn) { must(t, txn.Set(key, []byte("v"), TypeString, 0)) }
	for _, c := range []struct {
		what   string
		before func(Txn)
		change func(Txn)
		now    int64
		tells  bool
	}{
		{"a new key", nil, set, 1, true},
		{"an overwrite", set, set, 1, true},
		{"a longer value", set, func(txn Txn) { must(t, txn.Set(key, make([]byte, 5000), TypeString, 0)) }, 1, true},
		{"a large value", set, func(txn Txn) { must(t, txn.Set(key, make([]byte, 200<<10), TypeString, 0)) }, 1, true},
		{"Resize", set, func(txn Txn) { _, err := txn.Resize(key, 3); must(t, err) }, 1, true},
		{"Delete", set, func(txn Txn) { txn.Delete(key) }, 1, true},
		{"Delete of nothing", nil, func(txn Txn) { txn.Delete(key) }, 1, false},
		{"a first expiry", set, func(txn Txn) { txn.SetExpire(key, 100) }, 1, true},
		{"expiry", func(txn Txn) { must(t, txn.Set(key, []byte("v"), TypeString, 5)) }, func(txn Txn) { txn.Find(key) }, 6, true},
		{"a read", set, func(txn Txn) { txn.Find(key); txn.Peek(key) }, 1, false},
		{"another key", set, func(txn Txn) { must(t, txn.Set([]byte("other"), []byte("v"), TypeString, 0)) }, 1, false},
	} {
		txn := w.Lock(p, 1)
		if txn.Delete(key); c.before != nil {
			c.before(txn)
		}
		txn.Unlock()
		w.take()
		w.mark(t, p, "k", 7, 70)
		w.mark(t, p, "k", 7, 70) // which is there
		w.mark(t, p, "k", 8, 80)
		txn = w.Lock(p, c.now)
		c.change(txn)
		txn.Unlock()
		want := 0
		if c.tells {
			want = 2
		}
		told, _ := w.take()
		slices.Sort(told)
		if len(told) != want || want > 0 && !slices.Equal(told, []string{"7 70", "8 80"}) {
			t.Errorf("%s tells %q", c.what, told)
		}
		if n, keys := w.Marks(); n != 2-want || keys != n {
			t.Errorf("behind %s there are %d marks on %d keys", c.what, n, keys)
		}
		w.ForgetMarks()
		txn = w.Lock(p, 1)
		set(txn)
		txn.Unlock()
		if told, _ := w.take(); len(told) > 0 {
			t.Errorf("%q is told of what was forgotten", told)
		}
	}
}

// TestActorsOfChanges: what a command changes is told with its actor, and what expires or is evicted without.
func TestActorsOfChanges(t *testing.T) {
	oneGoroutine(t)
	const p = 2
	w := newWatched(t, 4<<20)
	txn := w.Lock(p, 1)
	must(t, txn.Set([]byte("old"), []byte("v"), TypeString, 5))
	txn.Unlock()
	w.mark(t, p, "k", 1, 1)
	w.mark(t, p, "old", 1, 2)
	txn = w.Lock(p, 10)
	txn.As(9)
	txn.Find([]byte("old"))
	must(t, txn.Set([]byte("k"), []byte("v"), TypeString, 0))
	txn.Unlock()
	if told, _ := w.take(); !slices.Equal(told, []string{"1 2", "1 1 by 9"}) {
		t.Errorf("told %q", told)
	}
	w.mark(t, p, "k", 1, 1)
	txn = w.Lock(p, 10)
	must(t, txn.Set([]byte("k"), []byte("v"), TypeString, 0))
	txn.Unlock()
	if told, _ := w.take(); !slices.Equal(told, []string{"1 1"}) {
		t.Errorf("the actor stayed: told %q", told)
	}
	for i := range 20000 { // the oldest are evicted
		key := fmt.Sprint("key", i)
		txn = w.Lock(p, 10)
		txn.As(9)
		must(t, txn.Set([]byte(key), make([]byte, 300), TypeString, 0))
		txn.Unlock()
		w.mark(t, p, key, 1, uint64(i))
	}
	told, _ := w.take()
	if len(told) < 1000 {
		t.Errorf("%d evictions are told", len(told))
	}
	for _, s := range told {
		if len(s) > 5 && s[len(s)-5:] == " by 9" {
			t.Fatalf("an eviction has an actor: %q", s)
		}
	}
}

// TestActorEndsBehindExpiry: an actor is forgotten with its command, also if that takes the last mark of a shard by
// an expiry.
func TestActorEndsBehindExpiry(t *testing.T) {
	const p = 2
	w := newWatched(t, 4<<20)
	key := []byte("k")
	txn := w.Lock(p, 1)
	must(t, txn.Set(key, []byte("v"), TypeString, 5))
	txn.Unlock()
	w.mark(t, p, "k", 1, 1)
	txn = w.Lock(p, 10)
	txn.As(9)
	txn.Find(key)
	txn.Unlock()
	w.mark(t, p, "k", 1, 1)
	txn = w.Lock(p, 10)
	must(t, txn.Set(key, []byte("v"), TypeString, 0))
	txn.Unlock()
	if told, _ := w.take(); !slices.Equal(told, []string{"1 1", "1 1"}) {
		t.Errorf("told %q", told)
	}
}

// TestMarksOfTheSameTag: a mark is told with the key that has changed, which need not be the marked one.
func TestMarksOfTheSameTag(t *testing.T) {
	const p = 2
	w := newWatched(t, 4<<20)
	seed := w.shardOf(p).seed.Load()
	one, other := sameTag(seed, 1), sameTag(seed, 2)
	for _, key := range []string{one, other} {
		w.mark(t, p, one, 1, 5)
		txn := w.Lock(p, 1)
		txn.As(9)
		must(t, txn.Set([]byte(key), []byte("v"), TypeString, 0))
		txn.Unlock()
		if !slices.Equal(w.told, []string{"1 5 by 9"}) || !slices.Equal(w.revoked, []string{key}) {
			t.Errorf("%q changes: told %q of %q", key, w.told, w.revoked)
		}
		w.take()
	}
}

// TestTellChanges: all changes are told by name while somebody wants to know.
func TestTellChanges(t *testing.T) {
	w := newWatched(t, 4<<20)
	change := func(p uint16, key string) {
		txn := w.Lock(p, 1)
		txn.As(3)
		must(t, txn.Set([]byte(key), []byte("v"), TypeString, 0))
		txn.Unlock()
	}
	change(1, "a")
	w.TellChanges(true)
	change(1, "a")
	change(2, "b")
	w.TellChanges(false)
	change(1, "c")
	if _, changed := w.take(); !slices.Equal(changed, []string{"a by 3", "b by 3"}) {
		t.Errorf("told %q", changed)
	}
}

// TestMarksModel compares the marks with a map, through growth, full tables and changes.
func TestMarksModel(t *testing.T) {
	oneGoroutine(t)
	w := newWatched(t, 64<<20)
	dice := rand.New(rand.NewPCG(1, 2))
	marks := make(map[string]bool) // "watcher hash"
	forget := func(told []string) {
		for _, s := range told {
			if !marks[s] {
				t.Fatalf("%q is told, and was not marked", s)
			}
			delete(marks, s)
		}
	}
	name := func(n int) string { return fmt.Sprint("key", n) }
	for step := range 200_000 {
		n := dice.IntN(30_000)
		p := uint16(n % 16)
		if step%3 == 0 {
			txn := w.Lock(p, 1)
			must(t, txn.Set([]byte(name(n)), []byte("v"), TypeString, 0))
			txn.Unlock()
			told, _ := w.take()
			forget(told)
			for watcher := range uint16(3) {
				if marks[fmt.Sprint(watcher+1, " ", n)] {
					t.Fatalf("the change of key %d is not told to %d", n, watcher+1)
				}
			}
			continue
		}
		watcher := uint16(dice.IntN(3)) + 1
		w.mark(t, p, name(n), watcher, uint64(n))
		told, _ := w.take() // a full table drops some
		forget(told)
		marks[fmt.Sprint(watcher, " ", n)] = true
	}
	marked := make(map[string]bool)
	for m := range marks {
		_, key, _ := strings.Cut(m, " ")
		marked[key] = true
	}
	if n, keys := w.Marks(); n != len(marks) || n < 10_000 || keys != len(marked) {
		t.Errorf("there are %d marks on %d keys, want %d on %d", n, keys, len(marks), len(marked))
	}
	used := w.Used()
	w.ForgetMarks()
	if freed := used - w.Used(); freed < int64(len(marks))*markSize || freed > 40*int64(len(marks)) {
		t.Errorf("%d marks took %d bytes", len(marks), freed)
	}
}

// TestFullMarks: a table that is full drops marks, and tells of them.
func TestFullMarks(t *testing.T) {
	oneGoroutine(t)
	w := newWatched(t, 64<<20)
	const keys = 2 * MaxMarks / 8 // in one of the shards
	for i := range keys {
		w.mark(t, 8, fmt.Sprint("key", i), 1, uint64(i))
	}
	told, _ := w.take()
	n, left := w.Marks()
	if n+len(told) != keys || n > MaxMarks/8 || n < MaxMarks/8*9/10 || left != n {
		t.Errorf("of %d marks %d are left, on %d keys, and %d were told", keys, n, left, len(told))
	}
	if slices.Sort(told); len(slices.Compact(told)) != keys-n {
		t.Error("some are told twice")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
