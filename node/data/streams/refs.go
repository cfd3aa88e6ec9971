package streams

import (
	"math/bits"
	"slices"
)

// outcome is what XDELEX and XACKDEL answer for an entry.
type outcome int8

const (
	noEntry         outcome = -1
	entryDeleted    outcome = 1
	entryReferenced outcome = 2
)

// removal deletes entries with regard to the groups that refer to them. It looks for references to
// a batch of entries at a time: a group that refers to none of them costs one step for all.
type removal struct {
	refs refs
	*batch
}

// batch is up to changedAtOnce entries that are to be deleted.
type batch struct {
	ids   []ID
	order []uint8 // places in ids of those that are looked for in groups, in the order of the IDs
	next  int     // of ids, the one that is deleted next

	// Sets of ids have a bit for each.
	acks        int    // of XACKDEL: so many of ids were acknowledged
	held        uint64 // of XACKDEL: those that were pending in its group
	looked      bool   // in all groups
	from        uint32 // the number of the group where the look goes on
	pending     uint64 // those that are pending in a group
	undelivered ID     // what is above was not delivered to some group
}

// begin begins with a batch.
func (d *removal) begin(ids []ID) {
	b := &batch{ids: ids, order: make([]uint8, len(ids)), undelivered: maxID}
	for i := range b.order {
		b.order[i] = uint8(i)
	}
	slices.SortFunc(b.order, func(x, y uint8) int { return ids[x].compare(ids[y]) })
	d.batch = b
}

// What counts for how many of refSteps. So does one look at a group, and one for an ID in it.
const (
	ackSteps    = 4
	deleteSteps = 2
)

// advance deletes entries of the batch, as long as there are steps left, of which it takes some. It
// calls f for each of them, in order: deleted is false if the entry stays, or was not there. If f
// returns false, that was the last one. whole is false if there were too few steps: the batch goes
// on in another run. With a group, for XACKDEL, only what is pending there is deleted, and
// acknowledged.
func (d *removal) advance(s *stream, g *group, steps *int, f func(o outcome, deleted bool) bool) (whole bool) {
	if g != nil && !d.acknowledge(s, g, steps) || !d.look(s, steps) {
		return false
	}
	for ; d.next < len(d.ids); d.next++ {
		if *steps <= 0 {
			return false
		}
		*steps -= deleteSteps
		if !f(d.delete(s, d.next, g != nil)) {
			break
		}
	}
	return true
}

// delete deletes the i-th entry, unless a group refers to it or, ofGroup, it was not pending.
func (d *removal) delete(s *stream, i int, ofGroup bool) (o outcome, deleted bool) {
	id, bit := d.ids[i], uint64(1)<<i
	switch {
	case ofGroup && d.held&bit == 0:
		return noEntry, false
	case d.refs == acked && (d.pending&bit != 0 || d.undelivered.less(id)):
		return entryReferenced, false
	}
	if deleted = s.delete(id); !deleted && !ofGroup { // what is pending may have been deleted before
		return noEntry, false
	}
	return entryDeleted, deleted
}

// acknowledge acknowledges what is pending in the group of XACKDEL, and reports whether that is
// all. No other group is asked for the rest.
func (d *removal) acknowledge(s *stream, g *group, steps *int) (whole bool) {
	for ; d.acks < len(d.ids); d.acks++ {
		if *steps <= 0 {
			return false
		}
		*steps -= ackSteps
		if s.ack(g, d.ids[d.acks]) {
			d.held |= 1 << d.acks
		}
	}
	d.order = slices.DeleteFunc(d.order, func(i uint8) bool { return d.held&(1<<i) == 0 })
	return true
}

// look finds out which entries are pending in groups, where DELREF removes them, and which are
// undelivered. It reports whether it has looked in all groups.
func (d *removal) look(s *stream, steps *int) (whole bool) {
	if d.refs == keepRef || s.groups() == 0 || len(d.order) == 0 {
		return true
	}
	for !d.looked {
		if *steps <= 0 {
			return false
		}
		g, found, next := s.pendingIn(d.batch, steps)
		d.pending |= found
		if d.refs == delRef && !d.dereference(s, &g, found, steps) {
			d.from = g.number
			return false
		}
		d.from = next
		d.looked = next == 0 || d.refs == acked && d.undelivered.less(d.ids[d.order[0]])
	}
	return true
}

// dereference removes what was found pending in a group, and reports whether that is all. It
// removes something, however few steps are left.
func (d *removal) dereference(s *stream, g *group, found uint64, steps *int) (whole bool) {
	for ; found != 0; found &= found - 1 {
		s.ack(g, d.ids[bits.TrailingZeros64(found)])
		if *steps -= ackSteps; *steps <= 0 {
			return found&(found-1) == 0
		}
	}
	return true
}
