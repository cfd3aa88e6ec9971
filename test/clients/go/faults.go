package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// driver is what the test writes.
var driver = bufio.NewReader(os.Stdin)

// whileDriver has the test do what word says, and repeats work until it has. It returns the test's last words.
func whileDriver(word string, work func() error) (last string, err error) {
	fmt.Println(word)
	if _, err := driver.ReadString('\n'); err != nil { // it begins
		return "", err
	}
	over := make(chan error, 1)
	go func() {
		var err error
		last, err = driver.ReadString('\n')
		over <- err
	}()
	for {
		if err := work(); err != nil {
			return "", err
		}
		select {
		case err := <-over:
			return strings.TrimSpace(last), err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// whileReplaced has all nodes replaced, and repeats work until that is done.
func whileReplaced(work func() error) error {
	_, err := whileDriver("replace", work)
	return err
}

// whileCrashed has a node killed, another one started and the proxies restarted, and repeats work, which may fail,
// until that is done. It returns when the node was killed.
func whileCrashed(work func() error) (killed time.Time, refused int, err error) {
	last, err := whileDriver("crash", func() error {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			refused++
		}
		return nil
	})
	if err != nil {
		return killed, refused, err
	}
	seconds, err := strconv.ParseFloat(last, 64)
	return time.UnixMilli(int64(seconds * 1000)), refused, err
}

// inLastMoments reports whether at is one of the last moments of the node that was killed: what it has acknowledged
// then may be lost with it.
func inLastMoments(at, killed time.Time) bool {
	return at.After(killed.Add(-time.Second)) && at.Before(killed.Add(250*time.Millisecond))
}

// critical is a section that locks protect. It notes when somebody was not alone in it.
type critical struct {
	mu       sync.Mutex
	inside   int
	entered  int
	together []time.Time
}

// enter is called by who has the lock, for a moment.
func (c *critical) enter() {
	c.mu.Lock()
	if c.inside++; c.inside > 1 {
		c.together = append(c.together, time.Now())
	}
	c.entered++
	c.mu.Unlock()
	time.Sleep(2 * time.Millisecond)
	c.mu.Lock()
	c.inside--
	c.mu.Unlock()
}

// lockFaults returns the steps in which four goroutines enter a section by the lock, while nodes are replaced and
// while one is killed. with calls enter while it has the lock.
func lockFaults(with func(ctx context.Context, enter func()) error) []step {
	replace := func(ctx context.Context) error {
		c := &critical{}
		if err := whileReplaced(func() error { return inFour(func() error { return with(ctx, c.enter) }) }); err != nil {
			return err
		}
		return want("times not alone", len(c.together), 0, nil)
	}
	crash := func(ctx context.Context) error {
		c := &critical{}
		killed, refused, err := whileCrashed(func() error { return inFour(func() error { return with(ctx, c.enter) }) })
		if err != nil {
			return err
		}
		late := 0
		for _, at := range c.together {
			if !inLastMoments(at, killed) {
				late++
			}
		}
		fmt.Printf("count %d times a lock was entered, %d rounds with errors: %d times not alone\n", c.entered, refused, len(c.together))
		return want("times not alone, but not in the last moments", late, 0, nil)
	}
	return []step{{"replace", replace}, {"crash", crash}}
}

func inFour(work func() error) error {
	var wait sync.WaitGroup
	all := make([]error, 4)
	for i := range all {
		wait.Go(func() { all[i] = work() })
	}
	wait.Wait()
	return errors.Join(all...)
}

// countFaults returns the steps in which each call of next gets another number, while nodes are replaced and while one
// is killed.
func countFaults(next func(ctx context.Context) (int, error)) []step {
	counted := map[int]time.Time{}
	var twice []time.Time // when numbers were counted first that came again
	count := func(ctx context.Context) error {
		n, err := next(ctx)
		if err != nil {
			return err
		}
		if at, there := counted[n]; there {
			twice = append(twice, at)
		}
		counted[n] = time.Now()
		return nil
	}
	replace := func(ctx context.Context) error {
		if err := whileReplaced(func() error { return count(ctx) }); err != nil {
			return err
		}
		return want("numbers that came twice", len(twice), 0, nil)
	}
	crash := func(ctx context.Context) error {
		before := len(counted)
		killed, refused, err := whileCrashed(func() error { return count(ctx) })
		if err != nil {
			return err
		}
		late := 0
		for _, at := range twice {
			if !inLastMoments(at, killed) {
				late++
			}
		}
		fmt.Printf("count %d requests: %d refused, %d counted twice\n", len(counted)-before, refused, len(twice))
		return want("counted twice, but not in the last moments", late, 0, nil)
	}
	return []step{{"replace", replace}, {"crash", crash}}
}
