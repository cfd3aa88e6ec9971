package test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/ring"
)

// tableWatch reads the tables of all nodes over and over: they say when the data of
// a partition began anew, and so whether a key may be missing.
type tableWatch struct {
	mu    sync.Mutex
	seen  map[ring.Version]time.Time
	began [ring.Partitions][]time.Time // when an epoch was first seen in which the data began
	last  *ring.Table

	stop context.CancelFunc
	done sync.WaitGroup
}

const (
	watchEvery = 40 * time.Millisecond
	// watchLag is how long after it was issued a table may be seen here at the latest.
	watchLag = 2 * time.Second
	// spreadTime is for how long a partition's old owner may still take writes, not
	// having heard of the table. They are lost, since data begins anew at the new one.
	spreadTime = time.Second
)

func watchTables(nodes ...*member) *tableWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &tableWatch{seen: map[ring.Version]time.Time{}, stop: cancel}
	for _, m := range nodes {
		w.done.Go(func() { w.follow(ctx, m.addr) })
	}
	return w
}

func (w *tableWatch) close() {
	w.stop()
	w.done.Wait()
}

// follow reads the tables of one node, which may be down at times.
func (w *tableWatch) follow(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, time.Second)
		t, err := node.FetchTable(ask, nil, addr, nil)
		cancel()
		if err == nil && t != nil {
			w.note(t, time.Now())
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
}

func (w *tableWatch) note(t *ring.Table, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.seen[t.Version()]; known {
		return
	}
	w.seen[t.Version()] = now
	for p, since := range t.Since {
		if w.last == nil || since > w.last.Since[p] {
			w.began[p] = append(w.began[p], now)
		}
	}
	if t.Newer(w.last) {
		w.last = t
	}
}

// judge returns an error for an absence that no table explains.
func (w *tableWatch) judge(a absence) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.began[a.partition] {
		if !t.Add(spreadTime).Before(a.from) && !t.Add(-watchLag).After(a.to) {
			return nil
		}
	}
	return fmt.Errorf("%s is missing though its partition %d did not move between %s and %s",
		a.key, a.partition, clock(a.from), clock(a.to))
}

// table is the newest one seen.
func (w *tableWatch) table() *ring.Table {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// sightings tells when each table was first seen.
func (w *tableWatch) sightings() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := "tables seen:"
	for _, v := range slices.SortedFunc(maps.Keys(w.seen), ring.CompareVersions) {
		text += fmt.Sprintf(" %d at %s,", v.Epoch, clock(w.seen[v]))
	}
	return text
}

// clock shows a time as logs do.
func clock(t time.Time) string { return t.Format("15:04:05.000") }
