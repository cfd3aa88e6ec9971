package streams

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

// idleScan finds what is pending in a group and idle for long enough, for XREADGROUP with CLAIM:
// the entries that are idle for longest. Pending entries have no order by time, so it looks at all
// of them, some in each run. An order would take as much memory as they do, and time when they are
// delivered and acknowledged (doc.go). But the group knows a time before which nothing pending was
// delivered: who asks again and again looks at none while that is too late. Each scan corrects it.
type idleScan struct {
	done    bool
	oldest  int64    // of what it has looked at
	from    ID       // of the pending entry where it goes on
	found   idleHeap // in order when it is done
	next    int      // of these, the one that is claimed next
	soonest int64    // when the first of the others was delivered, unix milliseconds; 0: there is none
}

// idleEntry is a pending entry that is idle for long enough.
type idleEntry struct {
	delivered int64
	id        ID
}

func (a idleEntry) compare(b idleEntry) int {
	return cmp.Or(cmp.Compare(a.delivered, b.delivered), a.id.compare(b.id))
}

const (
	// existsCost is how many steps of a scan the look for an entry counts for.
	existsCost = 24
	// maxClaimed is how many entries of a stream one XREADGROUP claims at most.
	maxClaimed = 1024
)

// scan goes on with the scan, for what is idle for minIdle milliseconds and at most so many
// entries, as far as there are steps left, of which it takes some. It reports whether that is all.
func (c *idleScan) scan(v *view, g *group, now, minIdle int64, most int, steps *int) (done bool) {
	most = min(most, maxClaimed)
	latest := int64(math.MinInt64)
	if minIdle <= now {
		latest = now - minIdle
	}
	if c.done = true; c.from.isZero() {
		if latest < g.oldest {
			if g.oldest != undelivered {
				c.soonest = g.oldest
			}
			return true
		}
		c.oldest = undelivered
	}
	m := v.keys()
	var key, prefix mapKey
	of, base := prefix.of(keyPending, g.number), v.base()
	for at := m.Seek(key.pending(g.number, c.from)); at.HasPrefix(of); at.Next() {
		if *steps--; *steps < 0 {
			c.from, c.done = pendingID(&at), false
			break
		}
		x := idleEntry{delivered: base + deliveredIn(at.Value())}
		c.oldest = min(c.oldest, x.delivered)
		switch {
		case x.delivered > latest:
			if c.soonest == 0 || x.delivered < c.soonest {
				c.soonest = x.delivered
			}
			continue
		case len(c.found) == most && x.delivered > c.found[0].delivered:
			continue
		}
		if x.id = pendingID(&at); len(c.found) < most || x.compare(c.found[0]) < 0 {
			*steps -= existsCost
			c.take(v, x, most)
		}
	}
	if c.done {
		v.setOldest(g, c.oldest)
		slices.SortFunc(c.found, idleEntry.compare)
	}
	return c.done
}

// take takes an entry that exists, in the place of the one that is idle for the shortest time if there are too many.
func (c *idleScan) take(v *view, x idleEntry, most int) {
	if !v.has(x.id) {
		return
	}
	if heap.Push(&c.found, x); len(c.found) > most {
		heap.Pop(&c.found)
	}
}

// after returns how long it takes until one more entry is idle for minIdle milliseconds, at least; 0: for ever.
func (c *idleScan) after(now, minIdle int64) time.Duration {
	left := max(minIdle, idlePause) // what is delivered from now on
	if c.soonest > 0 {
		left = min(left, max(minIdle-(now-c.soonest), 1))
	}
	if left < longestIdle {
		return time.Duration(left) * time.Millisecond
	}
	return 0
}

const (
	// idlePause is how many milliseconds a command waits at least that has found nothing pending.
	idlePause = 20
	// longestIdle is more milliseconds than any command waits.
	longestIdle = int64(200 * 365 * 24 * time.Hour / time.Millisecond)
)

// idleHeap has the entry on top that is idle for the shortest time.
type idleHeap []idleEntry

func (h idleHeap) Len() int           { return len(h) }
func (h idleHeap) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h idleHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *idleHeap) Push(x any) { *h = append(*h, x.(idleEntry)) }

// Pop implements heap.Interface.
func (h *idleHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
