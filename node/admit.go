package node

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// allPartitions is read only.
var allPartitions = ring.AllPartitions()

// served returns the partitions of wanted that the view serves.
func served(v *ownership.View, wanted *ring.PartitionSet) (s ring.PartitionSet) {
	for p := range uint16(ring.Partitions) {
		if v.Standing[p] == ownership.Serving && wanted.Has(p) {
			s.Add(p)
		}
	}
	return s
}

// admit checks whether this node may serve the command's keys now, and sets their partitions. If
// not, it answers the command and returns false.
func (r *request) admit(keys keyPlan) bool {
	switch keys {
	case oneKey:
		return r.admitSlot(r.slotOf(r.Cmd, r.Database, r.Args[r.Cmd.FirstKey(r.Args)]))
	case oneSlot, anySlots:
		return r.admitKeys(keys == oneSlot)
	case allKeys:
		return r.admitAll()
	}
	return true
}

// slotOf returns the slot by which a command is placed: that of its first key, or that of what it names instead, which
// lies in no database.
func (r *request) slotOf(c *command.Command, database uint8, key []byte) uint16 {
	if c.OnChannel() {
		return ring.Slot(key)
	}
	return r.Placement.SlotOf(database, key)
}

// admitSlot is admit for a single key, which nearly all commands have.
func (r *request) admitSlot(slot uint16) bool {
	r.Partition = ring.Partition(slot)
	if r.view.Standing[r.Partition] == ownership.Serving && !r.careful {
		return true
	}
	return r.admitSlotCarefully(slot)
}

// admitSlotCarefully is admitSlot off the fast path.
func (r *request) admitSlotCarefully(slot uint16) bool {
	p := ring.Partition(slot)
	if r.serves(p) || r.transaction != nil && r.Cmd.OnChannel() && !r.fenced || r.relaysPublish() {
		return true // another node may have the channel
	}
	r.turnAway(slot, p)
	return false
}

// admitAsked is admitSlot for what another node asks, which waits for no move.
func (r *request) admitAsked(slot uint16) bool {
	r.Partition = ring.Partition(slot)
	if r.serves(r.Partition) {
		return true
	}
	r.refuse(slot, r.Partition)
	return false
}

// verdict decides about a command of this connection on p.
func (r *request) verdict(p uint16) ownership.Verdict { return r.gate().Verdict(r.view, p, r.fenced) }

// serves reports whether this connection may use p now. A transaction that holds its partition uses
// no other.
func (r *request) serves(p uint16) bool { return r.Hold != nil || r.verdict(p) == ownership.Serve }

// admitKeys is admit for a command of several keys.
func (r *request) admitKeys(oneSlot bool) bool {
	switch {
	case r.Rest != nil:
		return r.admitRest()
	case r.listed != nil:
		return r.admitListed(oneSlot)
	case r.isUnlisted():
		r.listLater(r.raw)
		return false
	case r.Upload != nil && r.reading && r.conn.listsLater(r.Cmd, len(r.Args)):
		r.placeLater()
		return false
	}
	r.Keys, _ = r.Cmd.AppendKeys(r.Keys[:0], r.Args)
	if len(r.Keys) == 0 && r.Cmd.IsScript() && r.transaction == nil && r.Placement.Pins(r.Database) {
		return r.admitSlot(r.SlotOf(nil)) // it may use any key
	}
	r.Partitions = slices.Grow(r.Partitions[:0], len(r.Keys))
	if x := r.transaction; x != nil && !x.single { // its slot was planned, and admitted
		r.Partition = x.partition
		for range r.Keys {
			r.Partitions = append(r.Partitions, x.partition)
		}
		return true
	}
	first, crossing := uint16(0), false
	refusing := -1 // slot of the first key that is not served
	for i, pos := range r.Keys {
		slot := r.SlotOf(r.Args[pos])
		p := ring.Partition(slot)
		r.Partitions = append(r.Partitions, p)
		if i == 0 {
			first = slot
			r.Partition = p
		}
		crossing = crossing || slot != first
		served := r.view.Standing[p] == ownership.Serving && !r.careful
		if !served && refusing < 0 && !r.serves(p) {
			refusing = int(slot)
		}
	}
	switch {
	case crossing && oneSlot:
		r.Fail(errCrossSlot)
	case refusing < 0:
		return true
	case crossing && r.conn.pipe == nil:
		// A Redis Cluster client splits by slot and never sends this. Other clients cannot follow
		// MOVED and are told what is wrong.
		r.Fail(errCrossSlot)
	default:
		r.turnAway(uint16(refusing), r.Partitions...)
	}
	return false
}

// admitRest is admitKeys for a command that goes on: of the keys that come next. One that has changed
// something cannot be refused, since it must not begin anew.
func (r *request) admitRest() bool {
	if !r.Rest.IsPlaced(&r.Request) {
		r.Fail(errPartly)
		return false
	}
	from, to := r.Rest.Next()
	r.Partition = r.Partitions[from]
	for i := from; i < to; i++ {
		switch p := r.Partitions[i]; {
		case r.serves(p):
		case r.Cmd.Flags&command.Write != 0:
			r.Fail(errPartly)
			return false
		default:
			r.refuse(r.SlotOf(r.Args[r.Keys[i]]), r.Partitions...)
			return false
		}
	}
	return true
}

// admitAll is admit for a command over all keys. It covers what this node serves, which may be
// nothing, but refuses while the node does not know what that is.
func (r *request) admitAll() bool {
	switch {
	case r.fenced:
		r.replyWait()
	case r.view.Table == nil:
		r.replyNotServed()
	default:
		return true
	}
	return false
}

// refuse answers a command whose keys this node may not serve, or not now. slot is that of the
// first such key.
func (r *request) refuse(slot uint16, partitions ...uint16) {
	switch {
	case r.view.Table == nil:
		r.replyNotServed()
	case r.verdict(ring.Partition(slot)) == ownership.Wait:
		r.replyWait()
	default:
		r.worker.Count.Moved++
		redirect := member.AppendMoved
		if r.conn.pipe == nil {
			redirect = member.AppendClientMoved
		}
		r.Out = redirect(r.Out, slot, r.view.Table.OwnerOf(ring.Partition(slot)).Addr)
	}
	r.latch(partitions...)
}

// replyWait asks the sender to try again. A proxy does so on its own, and repeats the epoch in
// DUNLIN RETRY.
func (r *request) replyWait() {
	r.worker.Count.Waits++
	if r.conn.pipe != nil {
		r.Out = member.AppendWait(r.Out, r.view.Epoch())
		return
	}
	r.Fail(errTakingOver)
}

// replyNotServed answers before the first table. A proxy holds its requests until this node has the
// table too.
func (r *request) replyNotServed() {
	if r.conn.pipe != nil {
		r.replyWait()
		return
	}
	r.Fail(errNotServed)
}

// keyPlan says which of a command's keys this node must serve.
type keyPlan uint8

const (
	noKeys   keyPlan = iota
	oneKey           // a single one, at a fixed place
	oneSlot          // several, all in one slot
	anySlots         // several, in any slots
	allKeys          // whatever keys there are
)

// usesKeys reports whether a command with the plan uses keys that it names.
func (p *plan) usesKeys(c *command.Command) bool {
	return p.keys != noKeys && p.keys != allKeys && !c.OnChannel()
}

// keyPlanOf derives the plan from the command's row.
func keyPlanOf(c *command.Command) keyPlan {
	switch c.Route {
	case command.SplitKeys, command.SplitPairs:
		return anySlots
	case command.AllNodes:
		if c.Flags&command.Loading != 0 || c.Merge == command.MergeInfo {
			return noKeys // it is about the node, which answers it even if it serves nothing
		}
		return allKeys
	case command.Key:
		single := len(c.Keys) == 1 && c.Keys[0].Begin == command.BeginIndex &&
			c.Keys[0].Find == command.FindRange && c.Keys[0].Last == 0
		if single || c.Placed() > 0 {
			return oneKey
		}
		return oneSlot
	}
	return noKeys
}
