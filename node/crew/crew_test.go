package crew

import (
	"slices"
	"sync"
	"testing"
)

// Work waits for a place, in turns between the queues, and what is withdrawn is not done.
func TestTurns(t *testing.T) {
	var all sync.WaitGroup
	c := New(1, all.Go)
	var a, b, gone Queue
	begun, release := make(chan bool), make(chan bool)
	c.Go(&a, func() { begun <- true; <-release })
	<-begun
	var done []string
	add := func(q *Queue, names ...string) {
		for _, name := range names {
			c.Go(q, func() { done = append(done, name) }) // one place: no two at a time
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
	c := New(places, all.Go)
	queues := make([]Queue, 7)
	for i := range pieces {
		c.Go(&queues[i%len(queues)], func() {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			mu.Lock()
			now--
			done++
			mu.Unlock()
		})
	}
	all.Wait()
	if most > places || done != pieces {
		t.Errorf("%d were done, %d at a time, want %d, %d at most", done, most, pieces, places)
	}
}
