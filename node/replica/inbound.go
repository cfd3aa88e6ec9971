package replica

import "github.com/dunlin-cache/dunlin/ring"

// Inbound knows which batches of one sender's stream this node has applied, across its connections.
type Inbound struct {
	generation uint64 // 0: none yet
	last       uint64 // the last batch applied
}

// Open begins a connection of the stream's generation and returns the last batch that was applied.
// resumed is false if the generation is new: then the copies that the stream has fed are void.
func (i *Inbound) Open(generation uint64) (last uint64, resumed bool) {
	if i.generation != generation {
		i.generation, i.last = generation, 0
		return 0, false
	}
	return i.last, true
}

// Last returns the last batch that was applied.
func (i *Inbound) Last() uint64 { return i.last }

// Arrival says how a batch follows those before it.
type Arrival uint8

const (
	Repeated Arrival = iota // acknowledge it again: it was applied before
	Next                    // apply it, then call Applied
	Gap                     // close the connection: a batch before it is missing
)

// Judge decides about the batch numbered seq.
func (i *Inbound) Judge(seq uint64) Arrival {
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

// Refusals collects the partitions that one sender feeds and that this node does not accept.
type Refusals struct {
	Broken *Broken // nil: breaks no rule

	refused ring.PartitionSet // to tell the sender with the next answer
	told    ring.PartitionSet // told, but the answer may be lost; not accepted since
}

// Refuse notes that this node does not accept what the sender feeds of p.
func (r *Refusals) Refuse(p uint16) { r.refused.Add(p) }

// Accept notes that this node accepts what the sender feeds of p.
func (r *Refusals) Accept(p uint16) {
	r.refused.Remove(p)
	r.told.Remove(p)
}

// Tell appends to dst the partitions that the next answer refuses.
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

// Reopened is the event that the sender opened a new connection. Answers may have been lost with
// the old one, so Tell repeats what is still refused.
func (r *Refusals) Reopened() {
	if r.Broken == nil || !r.Broken.ForgetRefusals {
		r.refused.AddAll(&r.told)
	}
}

// Void is the event that the sender begins a new generation: no refusal counts any more.
func (r *Refusals) Void() { r.refused, r.told = ring.PartitionSet{}, ring.PartitionSet{} }
