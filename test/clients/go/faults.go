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

const (
	workTimeout = time.Minute // for what others do, on a busy machine

	// In these moments before a node's death, and behind it until nobody takes it for alive, a node
	// acknowledges what may be lost with it.
	lastMoments = time.Second
	behindDeath = 250 * time.Millisecond
)

// driver is what the test writes.
var driver = bufio.NewReader(os.Stdin)

// whileDriver has the test do what word says, and repeats work until it has, or until work fails.
// It returns the test's last words when that is over.
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
			<-over // the next step reads what the test writes then
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

// whileCrashed has a node killed, another one started and the proxies restarted, and repeats work,
// which may fail, until that is done. It returns when the node was killed, and how often work has
// failed.
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

// inLastMoments reports whether at is one of the last moments of the node that was killed: what it
// has acknowledged then may be lost with it.
func inLastMoments(at, killed time.Time) bool {
	return at.After(killed.Add(-lastMoments)) && at.Before(killed.Add(behindDeath))
}

// outside returns how many of these moments are not among the last ones of the node that was
// killed.
func outside(all []time.Time, killed time.Time) (n int) {
	for _, at := range all {
		if !inLastMoments(at, killed) {
			n++
		}
	}
	return n
}

// spread is the number of locks, limits and queues that a program uses by turns in a crash, so that
// some lie at the node that is killed.
const spread = 12

// critical is a section that locks protect. It notes when somebody was not alone in it.
type critical struct {
	mu       sync.Mutex
	inside   int
	entered  int
	together []time.Time
}

// enter is called by who has the lock, and stays for a moment.
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

// lockFaults returns the steps in which four goroutines enter sections by their locks, while nodes
// are replaced and while one is killed. with takes the i-th lock, calls enter and lets go.
func lockFaults(with func(ctx context.Context, i int, enter func()) error) []step {
	var sections [spread]critical
	inFour := func(ctx context.Context, i int) error {
		var wait sync.WaitGroup
		all := make([]error, 4)
		for g := range all {
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, workTimeout)
				defer cancel()
				all[g] = with(ctx, i, sections[i].enter)
			})
		}
		wait.Wait()
		return errors.Join(all...)
	}
	next := 0
	round := func(ctx context.Context) func() error {
		return func() error { next++; return inFour(ctx, next%spread) }
	}
	noted := func() (entered int, together []time.Time) {
		for i := range sections {
			entered += sections[i].entered
			together = append(together, sections[i].together...)
		}
		return entered, together
	}
	replace := func(ctx context.Context) error {
		err := whileReplaced(round(ctx))
		_, together := noted()
		return want("times not alone", len(together), 0, err)
	}
	crash := func(ctx context.Context) error {
		before, _ := noted()
		killed, refused, err := whileCrashed(round(ctx))
		if err != nil {
			return err
		}
		entered, together := noted()
		fmt.Printf("count %d times a lock was entered, %d rounds with errors: %d times not alone\n",
			entered-before, refused, len(together))
		for i := range spread {
			if err := inFour(ctx, i); err != nil {
				return fmt.Errorf("behind the crash: %w", err)
			}
		}
		return want("times not alone, but not in the last moments", outside(together, killed), 0, nil)
	}
	return []step{{"replace", replace}, {"crash", crash}}
}

// countFaults returns the steps in which each call of next with the same i gets another number,
// while nodes are replaced and while one is killed.
func countFaults(next func(ctx context.Context, i int) (int, error)) []step {
	var counted [spread]map[int]time.Time
	for i := range counted {
		counted[i] = make(map[int]time.Time)
	}
	var twice []time.Time // when numbers were counted first that came again
	requests := 0
	count := func(ctx context.Context) func() error {
		return func() error {
			requests++
			of := counted[requests%spread]
			n, err := next(ctx, requests%spread)
			if err != nil {
				return err
			}
			if at, there := of[n]; there {
				twice = append(twice, at)
			}
			of[n] = time.Now()
			return nil
		}
	}
	replace := func(ctx context.Context) error {
		err := whileReplaced(count(ctx))
		return want("numbers that came twice", len(twice), 0, err)
	}
	crash := func(ctx context.Context) error {
		before := requests
		killed, refused, err := whileCrashed(count(ctx))
		if err != nil {
			return err
		}
		fmt.Printf("count %d requests: %d refused, %d counted twice\n", requests-before, refused, len(twice))
		return want("counted twice, but not in the last moments", outside(twice, killed), 0, nil)
	}
	return []step{{"replace", replace}, {"crash", crash}}
}
