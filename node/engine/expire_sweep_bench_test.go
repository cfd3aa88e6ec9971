//go:build linux

package engine

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkSweep is for -benchtime 1x: it lets the sweep run at its pace beside ten million keys
// and reports how much of a processor it takes, and for how long expired keys stay.
func BenchmarkSweep(b *testing.B) {
	const keys, hour = 10_000_000, 3600_000
	run := func(name string, seconds int, expireAt func(i, start int64) int64) {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				e := open(b, Config{MaxBytes: 4 << 30, Shards: 64})
				start := time.Now().UnixMilli()
				fillExpiring(b, e, keys, func(i int64) int64 { return expireAt(i, start) })
				b.ReportMetric(float64(time.Now().UnixMilli()-start)/1000, "fill-s")
				sweepBench(b, e, seconds)
			}
		})
	}
	run("NoTTL", 10, func(int64, int64) int64 { return 0 })
	run("Uniform", 40, func(i, start int64) int64 { return start + 20_000 + int64(uint64(i)*0x9E3779B97F4A7C15>>32)*hour>>32 })
	run("OneMoment", 15, func(_, start int64) int64 { return start + 20_000 })
}

func fillExpiring(b *testing.B, e *Engine, keys int64, expireAt func(i int64) int64) {
	var buf [16]byte
	value := make([]byte, 64)
	for i := range keys {
		p, key := benchKey(buf[:], uint64(i))
		t := e.Lock(p, 1)
		if err := t.Set(key, value, TypeString, expireAt(i)); err != nil {
			b.Fatal(err)
		}
		t.Unlock()
	}
}

// sweepBench runs the sweep from when the first key is due, or at once.
func sweepBench(b *testing.B, e *Engine, seconds int) {
	if at := e.earliest(); at != never {
		time.Sleep(time.Until(time.UnixMilli(at)))
	}
	stop, used := make(chan struct{}), make(chan time.Duration)
	begin := time.Now()
	go func() {
		runtime.LockOSThread()
		before := threadTime(b)
		e.KeepSwept(stop, func() int64 { return time.Now().UnixMilli() })
		used <- threadTime(b) - before
	}()
	var longest int64
	busy := time.Duration(0)
	for range seconds * 4 {
		time.Sleep(time.Second / 4)
		if late := time.Now().UnixMilli() - e.earliest(); late > 0 {
			longest = max(longest, late)
			busy = time.Since(begin)
		}
	}
	close(stop)
	cpu := <-used
	b.ReportMetric(100*float64(cpu)/float64(time.Since(begin)), "cpu-%")
	b.ReportMetric(cpu.Seconds(), "cpu-s")
	b.ReportMetric(float64(longest)/1000, "delay-s")
	b.ReportMetric(busy.Seconds(), "busy-s")
	b.ReportMetric(float64(e.Stats().Expired), "expired")
	b.ReportMetric(float64(e.Stats().Used)/(1<<20), "used-MiB")
}

// earliest is a time before which nothing in the engine expires.
func (e *Engine) earliest() (at int64) {
	at = never
	for pg := 1; pg <= e.Pages(); pg++ {
		if p := &e.pool.pages[pg]; p.mark() != 0 {
			at = min(at, p.soonest.Load())
		}
	}
	return at
}

// threadTime is how long the caller's thread has had a processor.
func threadTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
