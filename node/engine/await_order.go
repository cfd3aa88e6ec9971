package engine

import (
	"slices"
	"sort"
	"time"
)

// Those who wait in a queue stand in the order in which they began to wait. Nearly all come to its end. Who has waited
// elsewhere before belongs further in front, and comes beside very many others when a partition has moved. So a long
// queue has marks, and a place is looked for behind the last of them that is not too young:
//
//	marks   ├──────────────┬─────────────┐
//	queue   a → b → … → c → d → … → e → f → … → g
//
// The first place of a queue with marks has one.

// milestone is a place that has a mark.
type milestone struct {
	at *place
	n  uint8 // places from here up to the next mark, at most: who leaves is not counted
}

// maxGap is how many places there are at most from one mark up to the next. A queue of fewer has none.
const maxGap = 128

// insert puts a place into the queue.
func (a *awaited) insert(at *place) {
	behind, m := a.behind(at.waiter().since)
	a.link(at, behind)
	a.note(at.position())
	if d := a.details; d != nil && d.marks != nil {
		if behind == nil {
			d.marks[0].at.marked, at.marked, d.marks[0].at = false, true, at
		}
		if d.marks[m].n++; d.marks[m].n > maxGap {
			d.divide(m)
		}
		return
	}
	if a.places++; a.places > maxGap {
		d := a.detailed()
		d.marks = []milestone{{a.first, a.places}}
		a.first.marked = true
		d.divide(0)
		a.places = 0 // until there are no marks
	}
}

// behind returns behind whom somebody stands who waits since then, nil if at the front, and in which gap that is.
func (a *awaited) behind(since time.Duration) (at *place, gap int) {
	var marks []milestone
	if a.details != nil {
		marks = a.details.marks
	}
	if a.first == nil || a.first.waiter().since > since {
		return nil, 0
	}
	if last := a.first.prev; last.waiter().since <= since {
		return last, len(marks) - 1
	}
	at = a.first
	if len(marks) > 0 {
		gap = sort.Search(len(marks), func(i int) bool { return marks[i].at.waiter().since > since }) - 1
		at = marks[gap].at
	}
	for at.next.waiter().since <= since {
		at = at.next
	}
	return at, gap
}

// divide puts a mark into the middle of a gap, unless enough have left there.
func (d *details) divide(gap int) {
	m := &d.marks[gap]
	at := m.at
	for n := range uint8(maxGap / 2) {
		if at.next == nil || at.next.marked {
			m.n = n + 1
			return
		}
		at = at.next
	}
	rest := m.n - maxGap/2
	m.n, at.marked = maxGap/2, true
	d.marks = slices.Insert(d.marks, gap+1, milestone{at, rest})
}

// unmark takes the mark off a place that is about to be removed.
func (d *details) unmark(at *place) {
	i := sort.Search(len(d.marks), func(i int) bool { return d.marks[i].at.waiter().since >= at.waiter().since })
	for d.marks[i].at != at { // they began to wait at the same time
		i++
	}
	switch next := at.next; {
	case next != nil && !next.marked:
		next.marked, d.marks[i].at = true, next
	default:
		d.marks = slices.Delete(d.marks, i, i+1)
	}
	if len(d.marks) == 0 {
		d.marks = nil
	}
}
