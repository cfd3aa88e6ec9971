package crew

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Work waits for a place, in turns between the queues, and what is withdrawn is not done.
func TestTurns(t *testing.T) {
	var all sync.WaitGroup
	c := New(1, all.Go, func(time.Duration) {})
	var a, b, gone Queue
	begun, release := make(chan bool), make(chan bool)
	c.Go(&a, netip.Addr{}, 0, func() time.Duration { begun <- true; <-release; return 0 })
	<-begun
	var done []string
	add := func(q *Queue, names ...string) {
		for _, name := range names {
			c.Go(q, netip.Addr{}, 0, func() time.Duration {
				done = append(done, name) // one place: no two at a time
				return 0
			})
		}
	}
	add(&a, "a1", "a2", "a3")
	add(&gone, "gone1", "gone2")
	add(&b, "b1")
	if got := len(c.Withdraw(&gone)); got != 2 || len(c.Withdraw(&gone)) != 0 {
		t.Errorf("%d were withdrawn, want 2", got)
	}
	close(release)
	all.Wait()
	if want := []string{"a1", "b1", "a2", "a3"}; !slices.Equal(done, want) {
		t.Errorf("done in the order %v, want %v", done, want)
	}
	add(&b, "b2") // the place is free again
	all.Wait()
	if done[len(done)-1] != "b2" {
		t.Error("nothing is done any more")
	}
}

// No more goroutines work than there are places, and all work is done.
func TestPlaces(t *testing.T) {
	const places, pieces = 3, 200
	var all sync.WaitGroup
	var mu sync.Mutex
	now, most, done := 0, 0, 0
	c := New(places, all.Go, func(time.Duration) {})
	queues := make([]Queue, 7)
	for i := range pieces {
		c.Go(&queues[i%len(queues)], netip.Addr{}, 0, func() time.Duration {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			mu.Lock()
			now--
			done++
			mu.Unlock()
			return 0
		})
	}
	all.Wait()
	if most > places || done != pieces {
		t.Errorf("%d were done, %d at a time, want %d, %d at most", done, most, pieces, places)
	}
}

// A place rests behind each piece of work, and only then takes the next one.
func TestRest(t *testing.T) {
	var all sync.WaitGroup
	var done []time.Duration
	c := New(1, all.Go, func(worked time.Duration) { done = append(done, -worked) })
	var q Queue
	for i := range time.Duration(3) {
		c.Go(&q, netip.Addr{}, 0, func() time.Duration {
			done = append(done, i+1)
			return i + 1
		})
	}
	all.Wait()
	if want := []time.Duration{1, -1, 2, -2, 3, -3}; !slices.Equal(done, want) {
		t.Errorf("work, and rests below 0, come in the order %d, want %d", done, want)
	}
}

// No place rests while any work has waited for long.
func TestNoRestWhileWorkWaitsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rest = 2 * LongWait / 5
		var rests atomic.Int64
		c := New(1, func(f func()) { go f() }, func(time.Duration) {
			rests.Add(1)
			time.Sleep(rest)
		})
		var q, gone Queue
		work := func() time.Duration { return 0 }
		for range 10 {
			c.Go(&q, netip.Addr{}, 0, work)
		}
		synctest.Wait()
		time.Sleep(10 * rest)
		if n := rests.Load(); n != 3+1 { // until the others have waited for long, and behind the last
			t.Errorf("a place has rested %d times behind 10 pieces of work, want 4", n)
		}
		if c.hurried.Load() != 0 {
			t.Errorf("%d pieces of work seem to wait", c.hurried.Load())
		}
		c.Go(&q, netip.Addr{}, 0, work)
		c.Go(&gone, netip.Addr{}, 0, work) // while the place rests
		synctest.Wait()
		c.Withdraw(&gone)
		time.Sleep(2 * LongWait)
		if c.hurried.Load() != 0 {
			t.Error("work that was withdrawn seems to wait")
		}
	})
}

// occupied returns a crew whose only place is taken. finish frees it, and returns when all work is done.
func occupied() (c *Crew, finish func()) {
	var all sync.WaitGroup
	c = New(1, all.Go, func(time.Duration) {})
	begun, release := make(chan bool), make(chan bool)
	c.Go(&Queue{}, netip.Addr{}, 0, func() time.Duration { begun <- true; <-release; return 0 })
	<-begun
	return c, func() {
		close(release)
		all.Wait()
	}
}

// Many connections from one address have their turns together, and leave nothing behind.
func TestSources(t *testing.T) {
	c, finish := occupied()
	var done []string
	add := func(q *Queue, from netip.Addr, names ...string) {
		for _, name := range names {
			c.Go(q, from, 0, func() time.Duration {
				done = append(done, name)
				return 0
			})
		}
	}
	many, gone := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i := range 4 {
		add(&Queue{}, many, fmt.Sprint("many", i))
	}
	var withdrawn [2]Queue
	add(&withdrawn[0], gone, "gone")
	add(&withdrawn[1], many, "gone")
	add(&Queue{}, netip.Addr{}, "proxy1", "proxy2")
	add(&Queue{}, netip.Addr{}, "other1", "other2")
	for i := range withdrawn {
		c.Withdraw(&withdrawn[i])
	}
	finish()
	want := []string{"many0", "proxy1", "other1", "many1", "proxy2", "other2", "many2", "many3"}
	if !slices.Equal(done, want) {
		t.Errorf("done in the order %v, want %v", done, want)
	}
	if len(c.sources) > 0 || c.turns.Len() > 0 || c.free != 1 {
		t.Errorf("%d sources and %d turns are left, %d places are free", len(c.sources), c.turns.Len(), c.free)
	}
}

// What one connection wants to be done takes turns between the things that it is about.
func TestLines(t *testing.T) {
	c, finish := occupied()
	var done []string
	var pipe Queue
	add := func(q *Queue, about uint16, names ...string) {
		for _, name := range names {
			c.Go(q, netip.Addr{}, about, func() time.Duration {
				done = append(done, name)
				return 0
			})
		}
	}
	add(&pipe, 1, "much1", "much2", "much3")
	add(&pipe, 2, "little1")
	add(&Queue{}, 1, "other")
	add(&pipe, 1, "much4")
	add(&pipe, 3, "late1", "late2")
	var gone Queue
	add(&gone, 1, "gone1", "gone2")
	add(&gone, 2, "gone3")
	if got := len(c.Withdraw(&gone)); got != 3 {
		t.Errorf("%d pieces of work are withdrawn, want 3", got)
	}
	finish()
	want := []string{"much1", "other", "little1", "late1", "much2", "late2", "much3", "much4"}
	if !slices.Equal(done, want) {
		t.Errorf("done in the order %v, want %v", done, want)
	}
}

// Work that was done in vain is first in its queue, and takes the turn of what is about the same.
func TestAnew(t *testing.T) {
	c, finish := occupied()
	var done []string
	work := func(name string) Work {
		return func() time.Duration {
			done = append(done, name)
			return 0
		}
	}
	var pipe, other Queue
	c.Go(&pipe, netip.Addr{}, 1, work("one"))
	c.Go(&other, netip.Addr{}, 1, work("other"))
	c.Go(&pipe, netip.Addr{}, 2, work("two"))
	c.Go(&pipe, netip.Addr{}, 2, work("two again"))
	c.Go(&pipe, netip.Addr{}, 3, work("three"))
	c.GoAnew(&pipe, netip.Addr{}, 2, work("anew"))
	c.GoAnew(&other, netip.Addr{}, 2, work("other anew"))
	finish()
	want := []string{"anew", "other anew", "one", "other", "three", "two", "two again"}
	if !slices.Equal(done, want) {
		t.Errorf("done in the order %v, want %v", done, want)
	}
}

// Withdraw takes no longer the more others wait, be it from the same address or from others.
func TestWithdrawAmongMany(t *testing.T) {
	const many, withdrawn, tries, bound = 100_000, 100, 5, 2 * time.Millisecond // going through all takes 10 ms or more
	for name, from := range map[string]netip.Addr{"one source": netip.MustParseAddr("192.0.2.1"), "many sources": {}} {
		c := New(0, nil, nil)
		queues := make([]Queue, many+tries*withdrawn)
		for i := range queues {
			c.Go(&queues[i], from, 0, func() time.Duration { return 0 })
		}
		best := time.Hour
		for try := range tries {
			begun := time.Now()
			for i := range withdrawn {
				if len(c.Withdraw(&queues[many+try*withdrawn+i])) != 1 {
					t.Fatal("the work does not wait")
				}
			}
			best = min(best, time.Since(begun))
		}
		if best > bound {
			t.Errorf("%s: of %d queues, %d are withdrawn in %v, want at most %v", name, many, withdrawn, best, bound)
		}
	}
}
