package replica

import "github.com/dunlin-cache/dunlin/ring"

// Inbound is how far the stream of one sender has come, over all its connections.
type Inbound struct {
	generation uint64 // 0: none yet
	last       uint64 // batch applied
}

// Open begins a connection of the stream's generation and returns the last batch that was applied.
// It reports false if the generation is new: then the copies that the stream has fed are void.
func (i *Inbound) Open(generation uint64) (last uint64, resumed bool) {
	if i.generation != generation {
		i.generation, i.last = generation, 0
		return 0, false
	}
	return i.last, true
}

// Last returns the last batch that was applied.
func (i *Inbound) Last() uint64 { return i.last }

// Verdict is what is to become of a batch.
type Verdict uint8

const (
	Repeated Verdict = iota // it was applied before: acknowledge it again
	Next                    // apply it, then call Applied
	Gap                     // a batch before it is missing: the connection is to end
)

// Judge returns what is to become of the batch numbered seq.
func (i *Inbound) Judge(seq uint64) Verdict {
	switch {
	case seq > i.last+1:
		return Gap
	case seq == i.last+1:
		return Next
	}
	return Repeated
}

// Applied notes that the next batch was applied.
func (i *Inbound) Applied() { i.last++ }

// Refusals are what one sender is to be told that this node does not take.
type Refusals struct {
	Broken *Broken // nil: nothing is

	refused ring.PartitionSet // of these the sender feeds no copy that this node has
	told    ring.PartitionSet // of these the sender was told so, perhaps in vain, and none was taken since
}

// Refuse notes that the sender feeds p in vain.
func (r *Refusals) Refuse(p uint16) { r.refused.Add(p) }

// Accept notes that this node takes what the sender feeds of p.
func (r *Refusals) Accept(p uint16) {
	r.refused.Remove(p)
	r.told.Remove(p)
}

// Tell appends to dst the partitions that the sender is to be told of with the next answer.
func (r *Refusals) Tell(dst []uint16) []uint16 {
	if r.refused.Empty() {
		return dst
	}
	for p := range uint16(ring.Partitions) {
		if r.refused.Has(p) {
			dst = append(dst, p)
		}
	}
	r.told.AddAll(&r.refused)
	r.refused = ring.PartitionSet{}
	return dst
}

// Reopened has the sender told everything again: answers may have been lost with its connection.
func (r *Refusals) Reopened() {
	if r.Broken == nil || !r.Broken.ForgetRefusals {
		r.refused.AddAll(&r.told)
	}
}

// Void forgets everything: the sender begins a new generation.
func (r *Refusals) Void() { r.refused, r.told = ring.PartitionSet{}, ring.PartitionSet{} }
