package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// testMin is enough for a few shards and next to nothing else.
const testMin = 8 << 20

// oneGoroutine skips, beside the race detector, a long test that has nothing for it to see:
// make test runs these with the engine's own checks instead.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("one goroutine")
	}
}

// open makes an engine that the test's end closes.
func open(tb testing.TB, cfg Config) *Engine {
	tb.Helper()
	e, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// with runs f on a locked partition.
func with(e *Engine, p uint16, now int64, f func(Txn)) {
	t := e.Lock(p, now)
	defer t.Unlock()
	f(t)
}

func mustSet(tb testing.TB, e *Engine, p uint16, key string, value []byte) {
	tb.Helper()
	with(e, p, 0, func(t Txn) {
		if err := t.Set([]byte(key), value, TypeString, 0); err != nil {
			tb.Fatalf("cannot set %.40q to %d bytes: %v", key, len(value), err)
		}
	})
}

// get is a copy of the value, nil if there is none.
func get(e *Engine, p uint16, key string) (value []byte) {
	with(e, p, 0, func(t Txn) {
		if item, ok := t.Find([]byte(key)); ok {
			value = append([]byte{}, item.Value()...)
		}
	})
	return value
}

func TestSetFindDelete(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	mustSet(t, e, 7, "a", []byte("1"))
	mustSet(t, e, 8, "a", []byte("2"))
	if got := string(get(e, 7, "a")) + string(get(e, 8, "a")); got != "12" {
		t.Errorf("got %q, want 12: a key is a key of its partition", got)
	}
	mustSet(t, e, 7, "a", []byte("longer than before"))
	mustSet(t, e, 7, "", nil)
	with(e, 7, 0, func(x Txn) {
		item, ok := x.Find([]byte("a"))
		if !ok || string(item.Value()) != "longer than before" || string(item.Key()) != "a" || item.Type() != TypeString || item.ExpireAt() != 0 {
			t.Errorf("got %q %q %d %d %t", item.Key(), item.Value(), item.Type(), item.ExpireAt(), ok)
		}
		if item, ok := x.Peek(nil); !ok || len(item.Value()) != 0 {
			t.Errorf("the empty key is not there")
		}
		if !x.Delete([]byte("a")) || x.Delete([]byte("a")) {
			t.Error("want a deleted once")
		}
	})
	if n := e.Count(7); n != 1 {
		t.Errorf("got %d keys, want 1", n)
	}
}

func TestLimitsOfLengths(t *testing.T) {
	e := open(t, Config{MaxBytes: testMin, Shards: 4})
	with(e, 0, 0, func(x Txn) {
		long := []byte(strings.Repeat("k", MaxKeyLen))
		if err := x.Set(long, []byte("v"), TypeString, 0); err != nil {
			t.Errorf("longest key: %v", err)
		}
		if item, ok := x.Find(long); !ok || string(item.Value()) != "v" {
			t.Error("longest key is not found")
		}
		if err := x.Set(append(long, 'k'), nil, TypeString, 0); !errors.Is(err, ErrKeyTooLong) {
			t.Errorf("got %v, want ErrKeyTooLong", err)
		}
		if _, err := x.Resize(long, MaxValueLen+1); !errors.Is(err, ErrValueTooLarge) {
			t.Errorf("got %v, want ErrValueTooLarge", err)
		}
		if err := x.Set([]byte("k"), make([]byte, testMin), TypeString, 0); !errors.Is(err, ErrMemory) {
			t.Errorf("got %v, want ErrMemory", err)
		}
		if _, ok := x.Find(long); !ok {
			t.Error("a value that can never fit evicted something")
		}
		if _, err := x.Resize([]byte("none"), 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

func TestNewNamesTheSmallestLimit(t *testing.T) {
	oneGoroutine(t)
	_, err := New(Config{MaxBytes: 1, Shards: 32})
	var shards int
	var limit, smallest int64
	if err == nil {
		t.Fatal("a limit of one byte works")
	}
	if _, scanErr := fmt.Sscanf(err.Error(), "a limit of %d bytes is too small for %d shards: the smallest is %dmb", &limit, &shards, &smallest); scanErr != nil {
		t.Fatalf("%v in %q", scanErr, err)
	}
	e := open(t, Config{MaxBytes: smallest << 20, Shards: 32})
	for i := range 20000 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint(i), bytes.Repeat([]byte("v"), i%3000))
	}
}

func TestResize(t *testing.T) {
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	sizes := []int{0, 5, 100, 90, 3000, 20_000, 20_100, 5_000_000, 5_000_001, 4_999_000, 70_000, 65_000, 16_380, 16_390, 10, 0, 40_000, 33_000, 40_000}
	mustSet(t, e, 1, "k", nil)
	var want []byte
	for step, n := range sizes {
		with(e, 1, 0, func(x Txn) {
			got, err := x.Resize([]byte("k"), n)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, make([]byte, max(0, n-len(want)))...)[:n]
			if !bytes.Equal(got, want) {
				t.Fatalf("step %d, resized to %d: kept bytes or zeros are wrong", step, n)
			}
			for i := range got {
				got[i] = byte(step + i%251 + 1)
			}
			copy(want, got)
		})
		if got := get(e, 1, "k"); !bytes.Equal(got, want) {
			t.Fatalf("step %d: found something else than written", step)
		}
	}
}

// TestCountAfterClose: who shows figures may come after the end.
func TestCountAfterClose(t *testing.T) {
	e, err := New(Config{MaxBytes: testMin, Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	with(e, 1, 0, func(x Txn) {
		if err := x.Set([]byte("k"), []byte("value"), TypeString, 0); err != nil {
			t.Error(err)
		}
	})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := e.Count(1); n != 0 || e.Stats().Keys != 0 {
		t.Errorf("a closed engine has %d keys in the partition, %d in all", n, e.Stats().Keys)
	}
}
