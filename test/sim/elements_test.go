package sim

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// What becomes of the elements that are pushed. Each has one place, until a client has it: in its
// list, in a reply on its way, or in a proxy that returns it because the client is gone. A reply
// is lost with its connection, and what a partition loses is not followed any further.

// element is one of which everything is known.
type element struct {
	place int
	by    *command // that has popped it; nil: it is in its list
	via   *conn    // not nil: the reply is on its way
	back  bool     // a proxy returns it
}

// listOf returns a list as the value of a key: lists never change.
func (w *world) listOf(list []int) int {
	if len(list) == 0 {
		return 0
	}
	w.lists = append(w.lists, list)
	return len(w.lists) - 1
}

// withPushed is the list of a place with what a command pushes.
func (w *world) withPushed(n *node, c *command, k int) int {
	if c.front {
		return w.listOf(append([]int{c.value}, n.list(k)...))
	}
	return w.listOf(append(slices.Clone(n.list(k)), c.value))
}

// pop pops at a node that believes it serves the place.
func (w *world) pop(n *node, via *conn, c *command, k int, late bool) popped {
	genuine := w.checkServer(n, c, k, late)
	list := n.list(k)
	values := n.data[k].values
	values[elements] = w.listOf(list[1:])
	w.change(n, c, k, genuine, values, effect{key: elements})
	switch e := w.elements[list[0]]; {
	case e == nil:
	case !genuine:
		delete(w.elements, list[0])
	case e.by != nil:
		w.violate("%d is popped from %d by %d, and was by %d", list[0], k, c.id, e.by.id)
	default:
		e.by, e.via = c, via
	}
	c.over = true
	return popped{k, list[0]}
}

// put notes that an element was pushed, by a server's own account.
func (w *world) put(c *command, k int) {
	if e := w.elements[c.value]; e != nil || !c.front {
		w.elements[c.value] = &element{place: k}
	}
}

// arrives notes that a reply with an element has come to the proxy. back says that the proxy is to
// return it.
func (w *world) arrives(c *command, m popped, back bool) {
	if e := w.elements[m.element]; e != nil && e.by == c {
		e.via, e.back = nil, back
	}
}

// tear notes that a place has perhaps lost something: its elements are not followed any further.
// If its list was emptied by a command, only that is over.
func (w *world) tear(k int, emptied bool) {
	for id, e := range w.elements {
		if e.place == k && (!emptied || e.by == nil) {
			delete(w.elements, id)
		}
	}
}

// checkFirst checks that nobody is served ahead of those that have waited longer in the queue, or
// were told that they can pop.
func (w *world) checkFirst(n *node, k int, first *waiter) {
	q := &n.queues[k]
	for _, wt := range q.waiters {
		if wt.truly+ageUnit < first.truly {
			w.violate("%s serves %d from %d ahead of %d, which waits since %v and not %v", n.p.name, first.cmd.id, k,
				wt.cmd.id, wt.truly, first.truly)
		}
	}
	for _, wt := range q.told {
		if !wt.cmd.over && !wt.pipe.superseded && !wt.pipe.ended && w.now-wt.told < member.ClaimTurn {
			w.violate("%s serves %d from %d while the pop of %d is on its way", n.p.name, first.cmd.id, k, wt.cmd.id)
		}
	}
}

// checkElements checks in the end that every element is where it must be.
func (w *world) checkElements() {
	listed := make(map[int]int)
	for k := range places {
		for _, id := range w.ownerOf(k).list(k) {
			listed[id]++
		}
	}
	for id, e := range w.elements {
		lies, lost := listed[id], e.via != nil && (e.via.ends[0] == nil || e.via.ends[1] == nil)
		switch {
		case e.by == nil && lies != 1, e.by != nil && lies != 0:
			w.violate("%d is in the list of %d %d times, and %v has popped it", id, e.place, lies, e.by)
		case e.via != nil && !lost:
			w.violate("the reply with %d has not arrived", id)
		case e.back:
			w.violate("%d was never returned", id)
		}
	}
}
