package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

const benchKeys = 1 << 20

// benchKey is 16 bytes, as in most published comparisons, and its partition. key is written over.
func benchKey(key []byte, i uint64) (uint16, []byte) {
	binary.LittleEndian.PutUint64(key, i*0x9E3779B97F4A7C15)
	binary.LittleEndian.PutUint64(key[8:], i)
	return uint16(i*0x9E3779B97F4A7C15>>32) % Partitions, key[:16]
}

func benchEngine(b *testing.B, maxBytes int64, keys int, value []byte) *Engine {
	e := open(b, Config{MaxBytes: maxBytes, Shards: 64})
	var buf [16]byte
	for i := range keys {
		benchSet(b, e, buf[:], uint64(i), value)
	}
	return e
}

func benchSet(b *testing.B, e *Engine, buf []byte, i uint64, value []byte) {
	p, key := benchKey(buf, i)
	t := e.Lock(p, 1)
	if err := t.Set(key, value, TypeString, 0); err != nil {
		b.Error(err)
	}
	t.Unlock()
}

func benchGet(b *testing.B, e *Engine, buf []byte, i uint64, want int) {
	p, key := benchKey(buf, i)
	t := e.Lock(p, 1)
	if item, ok := t.Find(key); !ok || len(item.Value()) != want {
		b.Error("not found")
	}
	t.Unlock()
}

// cpuTime begins to measure the processor time of the benchmark, in all its threads. On a machine
// with other work it says more than the time that has passed.
func cpuTime(b *testing.B) (report func()) {
	used := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkEngine(b *testing.B) {
	value := make([]byte, 64)
	b.Run("Get/1M", func(b *testing.B) {
		e := benchEngine(b, 1<<30, benchKeys, value)
		var buf [16]byte
		defer cpuTime(b)()
		for range b.N {
			benchGet(b, e, buf[:], rand.Uint64N(benchKeys), len(value))
		}
	})
	b.Run("Miss/1M", func(b *testing.B) {
		e := benchEngine(b, 1<<30, benchKeys, value)
		var buf [16]byte
		defer cpuTime(b)()
		for range b.N {
			p, key := benchKey(buf[:], benchKeys+rand.Uint64())
			t := e.Lock(p, 1)
			t.Find(key)
			t.Unlock()
		}
	})
	b.Run("Overwrite/1M", func(b *testing.B) {
		e := benchEngine(b, 1<<30, benchKeys, value)
		var buf [16]byte
		defer cpuTime(b)()
		for range b.N {
			benchSet(b, e, buf[:], rand.Uint64N(benchKeys), value)
		}
	})
	b.Run("Insert", func(b *testing.B) {
		e := benchEngine(b, 8<<30, 0, nil)
		var buf [16]byte
		defer cpuTime(b)()
		for i := range b.N {
			benchSet(b, e, buf[:], uint64(i), value)
		}
	})
	b.Run("InsertEvict", func(b *testing.B) {
		e := benchEngine(b, 128<<20, 2*benchKeys, value)
		var buf [16]byte
		defer cpuTime(b)()
		for i := range b.N {
			benchSet(b, e, buf[:], 1<<40+uint64(i), value)
		}
	})
	for _, size := range []int{16 << 10, 64 << 10, 512 << 10} {
		large := make([]byte, size)
		b.Run(fmt.Sprintf("Large/Set/%dKiB", size>>10), func(b *testing.B) {
			benchLarge(b, large, benchSet)
		})
		b.Run(fmt.Sprintf("Large/Stage/%dKiB", size>>10), func(b *testing.B) {
			benchLarge(b, large, benchStage)
		})
	}
}

// benchLarge inserts into an engine that is full of values of the same size.
func benchLarge(b *testing.B, value []byte, set func(b *testing.B, e *Engine, buf []byte, i uint64, value []byte)) {
	e := benchEngine(b, 128<<20, 256<<20/len(value), value)
	var buf [16]byte
	b.SetBytes(int64(len(value)))
	defer cpuTime(b)()
	for i := range b.N {
		set(b, e, buf[:], 1<<40+uint64(i), value)
	}
}

func benchStage(b *testing.B, e *Engine, buf []byte, i uint64, value []byte) {
	p, key := benchKey(buf, i)
	st, err := e.Stage(0, key, len(value))
	if err == nil {
		err = st.Write(value)
	}
	if err != nil {
		b.Fatal(err)
	}
	t := e.Lock(p, 1)
	if err := t.SetStaged(&st, TypeString, 0); err != nil {
		b.Error(err)
	}
	t.Unlock()
}

func BenchmarkEngineParallel(b *testing.B) {
	value := make([]byte, 64)
	run := func(name string, setsInTen uint64) {
		b.Run(name, func(b *testing.B) {
			e := benchEngine(b, 1<<30, benchKeys, value)
			var seed atomic.Uint64
			defer cpuTime(b)()
			b.RunParallel(func(pb *testing.PB) {
				r := rand.New(rand.NewPCG(1, seed.Add(1)))
				var buf [16]byte
				for pb.Next() {
					if i := r.Uint64N(benchKeys); r.Uint64()%10 < setsInTen {
						benchSet(b, e, buf[:], i, value)
					} else {
						benchGet(b, e, buf[:], i, len(value))
					}
				}
			})
		})
	}
	run("Get", 0)
	run("Mixed", 1)
}

// BenchmarkDensity reports what a key costs over the bytes of key and value, all that is counted
// towards the limit.
func BenchmarkDensity(b *testing.B) {
	run := func(name string, keys, size int) {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				e := benchEngine(b, 4<<30, keys, make([]byte, size))
				st := e.Stats()
				used := st.Used - st.Fixed
				b.ReportMetric(float64(used)/float64(keys)-16-float64(size), "overhead/key")
				b.ReportMetric(float64(st.Index)/float64(keys), "index/key")
				b.ReportMetric(float64(st.Slack)/float64(keys), "slack/key")
			}
		})
	}
	run("1M/16", 1_000_000, 16)
	run("1M/64", 1_000_000, 64)
	run("1.5M/64", 1_500_000, 64)
	run("5M/64", 5_000_000, 64)
	run("1M/200", 1_000_000, 200)
	run("1M/1000", 1_000_000, 1000)
}
