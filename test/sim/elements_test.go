package sim

import (
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// What becomes of the elements that are pushed. Each has one place, until a client has it: in its
// list, in a reply on its way, or in a proxy that returns it because the client is gone. A reply
// is lost with its connection, and what a partition loses is not followed any further.

// element is one of which everything is known.
type element struct {
	spot spot
	by   *command     // that has popped it; nil: it is in its list
	via  *conn        // not nil: the reply is on its way
	back bool         // a proxy returns it
	also *elementMove // not nil: it lies in a second list until it is taken from this one
}

// listOf returns a list as the value of a key: lists never change.
func (w *world) listOf(list []int) int {
	if len(list) == 0 {
		return 0
	}
	w.lists = append(w.lists, list)
	return len(w.lists) - 1
}

// spot is that of the list to which a command pushes.
func (c *command) spot() spot { return spotOf(c.place, c.key-elements) }

// withPushed is the list to which a command pushes, with what it pushes.
func (w *world) withPushed(n *node, c *command) int {
	list := n.list(c.spot())
	if c.front {
		return w.listOf(append([]int{c.value}, list...))
	}
	return w.listOf(append(slices.Clone(list), c.value))
}

// pop pops, or reads for the group, at a node that believes it serves the place.
func (w *world) pop(n *node, via *conn, c *command, at spot, late bool) popped {
	k := at.place()
	genuine := w.checkServer(n, c, k, late)
	list, most := n.list(at), 1
	if at.isStream() {
		most = readMost
	}
	taken := list[:min(most, len(list))]
	values := n.data[k].values
	values[at.key()] = w.listOf(list[len(taken):])
	w.change(n, c, k, genuine, values, effect{key: at.key()})
	for _, id := range taken {
		switch e := w.elements[id]; {
		case e == nil:
		case !genuine:
			delete(w.elements, id)
		case e.by != nil:
			w.violate("%d is popped from %d by %d, and was by %d", id, at, c.id, e.by.id)
		default:
			e.by, e.via = c, via
		}
	}
	c.over = true
	return popped{at, taken}
}

// put notes that an element was pushed, or an entry added, by a server's own account.
func (w *world) put(n *node, c *command) {
	if c.kind == add {
		w.journals[c.spot()] = append(w.journals[c.spot()], n.newest(c.spot()))
	} else if e := w.elements[c.value]; e == nil && !c.front {
		w.elements[c.value] = &element{spot: c.spot()}
	} else if e != nil {
		w.elements[c.value] = &element{spot: c.spot(), also: e.also}
	}
}

// arrives notes that a reply with elements has come to the proxy. back says that the proxy is to
// return them.
func (w *world) arrives(c *command, m popped, back bool) {
	for _, id := range m.elements {
		if e := w.elements[id]; e != nil && e.by == c {
			e.via, e.back = nil, back
		}
	}
}

// tear notes that a place has perhaps lost something: its elements are not followed any further, nor are those that
// were moved to another place and lie in its lists again, because the place has lost that they were taken. If its list
// was emptied by a command, only that is over.
func (w *world) tear(k int, emptied bool) {
	for n := range journals {
		w.journals[journal(k, n)] = nil
	}
	has := valuesOf(w.truth[k].last)
	for list := range poppable {
		for _, id := range w.lists[has[spotOf(k, list).key()]] {
			delete(w.elements, id)
		}
	}
	for id, e := range w.elements {
		if (e.spot.place() == k || e.also != nil && e.also.to.place() == k) && (!emptied || e.by == nil) {
			delete(w.elements, id)
		}
	}
}

// checkFirst checks that nobody is served ahead of those that have waited longer in the queue.
func (w *world) checkFirst(n *node, at spot, first *waiter) {
	q := &n.queues[at]
	for _, wt := range q.waiters {
		if wt.truly+ageUnit < first.truly {
			w.violate("%s serves %d from %d ahead of %d, which waits since %v and not %v", n.p.name, first.cmd.id, at,
				wt.cmd.id, wt.truly, first.truly)
		}
	}
}

// checkTold checks that nobody is served from a list of which others were told that they can pop.
func (w *world) checkTold(n *node, at spot, first *waiter) {
	for _, wt := range n.queues[at].told {
		if !wt.cmd.over && !wt.pipe.superseded && !wt.pipe.ended && w.now-wt.told < member.ClaimTurn {
			w.violate("%s serves %d from %d while the pop of %d is on its way", n.p.name, first.cmd.id, at, wt.cmd.id)
		}
	}
}

// checkElements checks in the end that every element is where it must be.
func (w *world) checkElements() {
	listed := make(map[int]int)
	for at := range spot(spots) {
		if at.isJournal() {
			continue
		}
		for _, id := range w.ownerOf(at.place()).list(at) {
			listed[id]++
		}
	}
	for id, e := range w.elements {
		lies, lost := listed[id], e.via != nil && (e.via.ends[0] == nil || e.via.ends[1] == nil)
		switch {
		case e.by == nil && lies != 1, e.by != nil && lies != 0:
			w.violate("%d is in the list of %d %d times, and %v has popped it", id, e.spot, lies, e.by)
		case e.via != nil && !lost:
			w.violate("the reply with %d has not arrived", id)
		case e.back:
			w.violate("%d was never returned", id)
		}
	}
}

// TestMovedBack has a place lose that one of two elements was taken, which were moved to another place: only the other
// one has one place still.
func TestMovedBack(t *testing.T) {
	w := newWorld(options{seed: 1, claims: true, moves: true})
	const again, elsewhere = 1, 2
	from, to := spotOf(0, 1), spotOf(1, 0)
	w.elements[again] = &element{spot: to, by: &command{}} // both sides of a split may pop it
	w.elements[elsewhere] = &element{spot: to}
	before := &change{}
	before.values[from.key()] = w.listOf([]int{again})
	w.truth[from.place()].last = before
	w.tear(from.place(), false)
	if w.elements[again] != nil {
		t.Error("an element that lies in the list from which it was moved has one place")
	}
	if w.elements[elsewhere] == nil {
		t.Error("an element is not followed any further, though only the list from which it was moved has lost something")
	}
}
