package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// tableWatch polls the tables of all nodes. They say when the data of a partition began anew, and
// so whether a key may be missing.
type tableWatch struct {
	mu      sync.Mutex
	seen    map[ring.Version]time.Time
	began   [ring.Partitions][]time.Time // when an epoch in which the data began was first seen
	last    *ring.Table
	reached [1 << 8]time.Time // when last has had each level since, at least
	spread  [1 << 8]bool      // all members know that it has
	all     []sighting        // of the latest tables, by time

	secret []byte // of the cluster
	pulse  *pulse

	ctx  context.Context // canceled by close
	stop context.CancelFunc
	done sync.WaitGroup
}

// sighting is a table and when it was first seen.
type sighting struct {
	table *ring.Table
	at    time.Time
}

const (
	// keptTables is how many tables are kept: more than one fault leads to.
	keptTables = 2000
	watchEvery = 40 * time.Millisecond
	// watchLag bounds the time from issuing a table to seeing it here, beside the time for which the
	// machine stands still.
	watchLag = 2 * time.Second
	// spreadTime bounds the time in which a partition's old owner may accept writes because it does
	// not have the table yet, beside the time for which the machine stands still. These are lost
	// where data begins anew at the new owner.
	spreadTime = time.Second
)

func watchTables(machine *pulse, secret []byte, nodes ...*harness.Member) *tableWatch {
	w := &tableWatch{pulse: machine, secret: secret, seen: map[ring.Version]time.Time{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	for _, m := range nodes {
		w.Watch(m.Addr)
	}
	return w
}

// Watch reads the tables of one more node.
func (w *tableWatch) Watch(addr string) { w.done.Go(func() { w.follow(w.ctx, addr) }) }

func (w *tableWatch) close() {
	w.stop()
	w.done.Wait()
}

// follow reads the tables of one node, which may be down at times.
func (w *tableWatch) follow(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, time.Second)
		t, err := member.FetchTable(ask, nil, addr, w.secret)
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
	w.all = append(w.all, sighting{t, now})
	if len(w.all) == 2*keptTables {
		w.all = append(w.all[:0], w.all[keptTables:]...)
	}
	if w.last == nil || t.Epoch >= w.last.Epoch {
		for level := range int(t.Level) + 1 {
			if w.last == nil || level > int(w.last.Level) {
				w.reached[level] = now
			}
		}
		w.last = t
	}
}

// ownedAbout reports whether a table of about that time gives the partition to the node.
func (w *tableWatch) ownedAbout(id string, partition uint16, at time.Time) bool {
	return w.about(at, func(t *ring.Table) bool { return t.OwnerOf(partition).ID == id })
}

// movingAbout reports whether the partition moves in a table of about that time, or may move in one that
// the watch came too late to see: a cluster whose nodes start one by one grows at once.
func (w *tableWatch) movingAbout(partition uint16, at time.Time) bool {
	w.mu.Lock()
	unseen := len(w.all) > 0 && w.all[0].table.Epoch > 1 && at.Before(w.all[0].at.Add(watchLag))
	w.mu.Unlock()
	return unseen || w.about(at, func(t *ring.Table) bool {
		return slices.ContainsFunc(t.Moves, func(m ring.Move) bool { return m.Partition == partition })
	})
}

// movedUntil returns when the first table behind the last one with moves was first seen: now if the latest one has
// moves, and the zero time if none has.
func (w *tableWatch) movedUntil(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	until := now
	for _, s := range slices.Backward(w.all) {
		if len(s.table.Moves) > 0 {
			return until
		}
		until = s.at
	}
	return time.Time{}
}

// stood returns for how long the machine stood still in the interval.
func (w *tableWatch) stood(begin, end time.Time) time.Duration {
	if !begin.Before(end) {
		return 0
	}
	return w.pulse.Missed(begin, end)
}

// about reports whether is holds for a table that may have been in use at that time, give or take
// watchLag.
func (w *tableWatch) about(at time.Time, is func(*ring.Table) bool) bool {
	lag := watchLag + w.stood(at.Add(-watchLag), at.Add(watchLag))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.all {
		replaced := i+1 < len(w.all) && w.all[i+1].at.Add(lag).Before(at)
		if !replaced && !s.at.After(at.Add(lag)) && is(s.table) {
			return true
		}
	}
	return false
}

// Moved returns how many changes of owners the tables seen between the times show.
func (w *tableWatch) Moved(from, to time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.all); i++ {
		if s := w.all[i]; s.at.Before(from) || s.at.After(to) {
			continue
		}
		for p := range uint16(ring.Partitions) {
			if w.all[i].table.OwnerOf(p).ID != w.all[i-1].table.OwnerOf(p).ID {
				n++
			}
		}
	}
	return n
}

// BegunAnew returns how many partitions' data began anew between the times.
func (w *tableWatch) BegunAnew(from, to time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, began := range w.began {
		if slices.ContainsFunc(began, func(t time.Time) bool { return t.After(from) && t.Before(to) }) {
			n++
		}
	}
	return n
}

// judge returns an error for an absence that no table explains.
func (w *tableWatch) judge(a absence) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.began[a.partition] {
		if a.shown > 0 {
			break // a partition that begins anew has no older write
		}
		if w.explains(t, a) {
			return nil
		}
	}
	return fmt.Errorf("%v, though the data of its partition %d did not begin anew between %s and %s",
		a, a.partition, Clock(a.from), Clock(a.to))
}

// explains reports whether an absence may come of data that began anew, as a table says that was
// seen at that time.
func (w *tableWatch) explains(seen time.Time, a absence) bool {
	spread, lag := spreadTime+w.stood(seen, a.from), watchLag+w.stood(a.to, seen)
	return !seen.Add(spread).Before(a.from) && !seen.Add(-lag).After(a.to)
}

// beganAnew reports whether data that began anew before a time, in nanoseconds, explains an
// absence.
func (w *tableWatch) beganAnew(a absence, before int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.began[a.partition], func(t time.Time) bool {
		return t.UnixNano() < before && w.explains(t, a)
	})
}

// Table returns the newest table seen, or nil. It must not be changed.
func (w *tableWatch) Table() *ring.Table {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// atLevel reports whether all members know by now that the cluster has at least this level.
func (w *tableWatch) atLevel(level uint8) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.reached[level]; !w.spread[level] && w.last != nil && w.last.Level >= level && time.Since(at) > watchLag {
		w.spread[level] = time.Since(at) > watchLag+w.stood(at, time.Now())
	}
	return w.spread[level]
}

// ofEpoch returns the table of an epoch that was seen last, or nil. Two coordinators may have
// issued tables of one epoch, if the first died before others saw its table.
func (w *tableWatch) ofEpoch(epoch uint64) *ring.Table {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.all) {
		if s.table.Epoch == epoch {
			return s.table
		}
	}
	return nil
}

// sightings returns a text that says when each table was first seen.
func (w *tableWatch) sightings() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := "tables seen:"
	for _, v := range slices.SortedFunc(maps.Keys(w.seen), ring.CompareVersions) {
		text += fmt.Sprintf(" %d at %s,", v.Epoch, Clock(w.seen[v]))
	}
	return text
}

// Clock formats a time of day as logs do.
func Clock(t time.Time) string { return t.Format("15:04:05.000") }
