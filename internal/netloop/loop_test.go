package netloop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Functions of one goroutine run in order, each once, on the loop.
func TestPost(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const posters, count = 4, 10_000
	var next [posters]int // only touched on the loop
	var wrong int
	var wg sync.WaitGroup
	for p := range posters {
		wg.Go(func() {
			for i := range count {
				g.loops[0].Post(func() {
					if next[p] != i {
						wrong++
					}
					next[p]++
				})
			}
		})
	}
	wg.Wait()
	each(t, g, func(*Loop) {
		if wrong > 0 || next != [posters]int{count, count, count, count} {
			t.Errorf("ran %v, %d out of order", next, wrong)
		}
	})
}

// A post wakes a sleeping loop at once. The test repeats this many times, to meet the moment of
// falling asleep.
func TestPostWakes(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const count = 300
	start := time.Now()
	done := make(chan bool)
	for range count {
		g.loops[0].Post(func() { done <- true })
		receive(t, done)
	}
	if d := time.Since(start); d > count*maxWait/4 {
		t.Fatalf("%d posts took %v: wakeups are lost", count, d)
	}
}

// A thread outlives the loop that ran on it. What the thread has started may end with it
// (PR_SET_PDEATHSIG).
func TestThreadOutlivesItsLoop(t *testing.T) {
	var first string
	for i := range 20 {
		g := newGroup(t, Config{Loops: 1})
		each(t, g, func(*Loop) {
			if i == 0 {
				first = fmt.Sprintf("/proc/self/task/%d", threadID())
			}
		})
		g.Close()
	}
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("this system does not list threads")
	}
	if _, err := os.Stat(first); err != nil {
		t.Error("the thread ended with its loop")
	}
}

// If a function is posted after the iteration has run its functions, and before the loop sleeps,
// the loop does not sleep.
func TestPostBeforeSleep(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	const count = 30
	start := time.Now()
	done := make(chan bool)
	each(t, g, func(l *Loop) {
		n := 0
		l.OnIterationEnd(func() {
			if n++; n <= count {
				l.Post(func() {})
			} else if n == count+1 {
				close(done)
			}
		})
	})
	receive(t, done)
	if d := time.Since(start); d > count*maxWait/4 {
		t.Fatalf("%d iterations took %v: the loop slept although something was posted", count, d)
	}
}

// An idle loop sleeps.
func TestIdleLoopSleeps(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	l := g.loops[0]
	counts := make(chan uint64)
	count := func() { counts <- l.Stats().Iterations }
	l.Post(func() { l.After(time.Second, count); count() })
	before := receive(t, counts)
	if n := receive(t, counts) - before; n > 100 {
		t.Fatalf("%d iterations in an idle second", n)
	}
}

func TestEach(t *testing.T) {
	g := newGroup(t, Config{Loops: 4, Answer: time.Second})
	var seen [4]int
	each(t, g, func(l *Loop) { seen[l.Index()]++ })
	if seen != [4]int{1, 1, 1, 1} {
		t.Fatalf("calls by loop: %v", seen)
	}
	resume := holdLoop(g.loops[2])
	defer resume()
	if err := g.Each(func(*Loop) {}); err == nil {
		t.Fatal("no error although a loop is busy")
	}
}

func TestTimers(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	fired := make(chan int, 10)
	each(t, g, func(l *Loop) {
		l.After(50*time.Millisecond, func() { fired <- 3 })
		l.After(0, func() { fired <- 1 })
		l.After(25*time.Millisecond, func() { fired <- 2 })
		stopped := l.After(5*time.Millisecond, func() { fired <- 99 })
		stopped.Stop()
		stopped.Stop()
	})
	for want := 1; want <= 3; want++ {
		if got := receive(t, fired); got != want {
			t.Fatalf("timer %d fired, want %d", got, want)
		}
	}
}

// A timer is never early by the loop's clock, and late by at most coarse.
func TestTimerIsNotEarly(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	for _, d := range []time.Duration{0, 1, tick - 1, tick, tick + 1, 33 * time.Millisecond} {
		took := make(chan time.Duration)
		each(t, g, func(l *Loop) {
			start := l.Now()
			timer := l.After(d, func() { took <- l.Now() - start })
			if late := timer.at - start - d; late <= 0 || late > tick {
				t.Errorf("After(%v) is planned %v later", d, late)
			}
		})
		if got := receive(t, took); got < d {
			t.Errorf("After(%v) fired after %v", d, got)
		}
	}
}

// Every repeats until it is stopped, even from inside its function. A busy loop skips the calls
// that it missed.
func TestEvery(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	fired := make(chan int, 100)
	each(t, g, func(l *Loop) {
		n := 0
		var timer *Timer
		timer = l.Every(time.Millisecond, func() {
			if n++; n == 5 {
				timer.Stop()
			}
			fired <- n
		})
		l.now += 20 * tick // as if the loop had been busy: one call is due, not twenty
		l.runTimers()
		if n != 1 {
			t.Errorf("%d calls after a pause, want 1", n)
		}
		l.now -= 20 * tick
	})
	for want := 1; want <= 5; want++ {
		if got := receive(t, fired); got != want {
			t.Fatalf("call %d, want %d", got, want)
		}
	}
	each(t, g, func(l *Loop) {
		if len(l.timers) != 1 {
			t.Errorf("%d timers left, want the loop's own", len(l.timers))
		}
	})
}

// Timers with the same period are due together, whenever they were set.
func TestEveryIsAligned(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	each(t, g, func(l *Loop) {
		now := l.now
		for _, at := range []time.Duration{now, now + 7*tick, now + 31*tick + 1} {
			l.now = at
			timer := l.Every(50*tick, func() {})
			if timer.at%(50*tick) != 0 || timer.at <= at || timer.at > at+50*tick {
				t.Errorf("a timer with a period of %v, set at %v, is due at %v", 50*tick, at, timer.at)
			}
			timer.Stop()
		}
		l.now = now
	})
}

func TestClock(t *testing.T) {
	g := newGroup(t, Config{Loops: 2})
	each(t, g, func(l *Loop) {
		if off := time.Since(time.UnixMilli(l.UnixMilli())); off < -time.Second || off > time.Second {
			t.Errorf("loop %d is off by %v", l.Index(), off)
		}
	})
}

// Closing the group ends conns, dials and listeners, with one OnClose each. Functions posted before
// are run.
func TestGroupClose(t *testing.T) {
	g := newGroup(t, Config{Loops: 2})
	closed, reasons := closeReasons()
	ln := serve(t, g, funcs{data: echo{}.OnData, closed: closed})
	clients := []io.ReadWriter{dialTo(t, ln), dialTo(t, ln), dialTo(t, ln)}
	for _, nc := range clients {
		write(t, nc, "x")
		expect(t, nc, "x")
	}
	var posted atomic.Int32
	for range 10 {
		g.loops[0].Post(func() { posted.Add(1) })
	}
	g.Close()
	g.Close()
	g.loops[0].Post(func() { t.Error("posted after Close, and run") })
	if posted.Load() != 10 {
		t.Errorf("%d of 10 posted functions were run", posted.Load())
	}
	for range clients {
		if err := receive(t, reasons); err != ErrClosed {
			t.Fatalf("closed with %v, want %v", err, ErrClosed)
		}
	}
	if err := g.Each(func(*Loop) {}); !errors.Is(err, ErrClosed) {
		t.Fatalf("Each after Close: %v", err)
	}
	if _, err := g.Listen("127.0.0.1:0", nil); !errors.Is(err, ErrClosed) {
		t.Fatalf("Listen after Close: %v", err)
	}
}

// Groups close their descriptors.
func TestGroupLeaksNothing(t *testing.T) {
	use := func() {
		g, err := NewGroup(Config{Loops: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		ln := serve(t, g, echo{})
		for range 5 {
			dialTo(t, ln).Close()
		}
		dialled := make(chan bool)
		g.loops[0].Post(func() {
			g.loops[0].Dial(ln.Addr(), patience, func(*Conn) Handler { dialled <- true; return echo{} }, func(error) {})
		})
		receive(t, dialled)
	}
	use() // the runtime opens some descriptors once
	before := openFDs(t)
	for range 5 {
		use()
	}
	if after := openFDs(t); after > before {
		t.Fatalf("%d descriptors open, %d before", after, before)
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// The garbage collector must stop the world to begin and to end, and loops in a raw wait keep their
// processors: a signal must interrupt them. If that fails, each collection lasts as long as the
// loops sleep, or for ever.
func TestGarbageCollectionIsQuick(t *testing.T) {
	g := newGroup(t, Config{Loops: 4})
	each(t, g, func(l *Loop) { l.rawOnly = true })
	took := make([]time.Duration, 31)
	for i := range took {
		start := time.Now()
		runtime.GC()
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > maxWait/4 {
		t.Fatalf("a collection took %v in the median, %v at most", median, took[len(took)-1])
	}
	t.Logf("median %v, max %v", took[len(took)/2], took[len(took)-1])
}

// Connections that keep the loop busy are served over several iterations, so that the first replies
// do not wait for the last request.
func TestLongTurnIsDivided(t *testing.T) {
	g := newGroup(t, Config{Loops: 1})
	calls := map[uint64]int{} // by iteration
	ln := serve(t, g, funcs{data: func(c *Conn, in []byte) int {
		calls[c.loop.stats.Iterations]++
		for began := time.Now(); time.Since(began) < turnLimit/2; {
			continue
		}
		c.SetOut(append(c.Out(), in...))
		return len(in)
	}})
	var all []net.Conn
	for range 30 {
		all = append(all, dialTo(t, ln))
	}
	for range 2 {
		resume := holdLoop(g.loops[0])
		for _, nc := range all {
			write(t, nc, "hello")
		}
		resume()
		for _, nc := range all {
			expect(t, nc, "hello")
		}
	}
	each(t, g, func(*Loop) {
		for iteration, n := range calls {
			if n > 4 {
				t.Errorf("%d conns had their turn in iteration %d, %v each", n, iteration, turnLimit/2)
			}
		}
	})
}
