package sets

import "github.com/dunlin-cache/dunlin/node/exec"

// seen has the members that a union has found, or those that a difference leaves out, where looking
// for each member in all other sources would take longer. It is on the Go heap and charged to the
// memory limit.
type seen struct {
	heap    exec.Heap
	members map[string]struct{}
	charged int64
	lost    bool // there was no memory for it
}

const (
	// fewSources is how many sources are looked into for each member.
	fewSources = 4
	// seenCost is about what a member takes beside its bytes, with what is unused of the map.
	seenCost = 80
)

// add adds a member, and reports whether it is new.
func (s *seen) add(member []byte) bool {
	if s.has(member) {
		return false
	}
	cost := int64(seenCost + len(member))
	if s.lost || !s.heap.Charge(cost) {
		s.lost = true
		return false
	}
	s.charged += cost
	s.members[string(member)] = struct{}{}
	return true
}

func (s *seen) has(member []byte) bool {
	_, there := s.members[string(member)]
	return there
}

// end gives the memory back.
func (s *seen) end() {
	if s != nil && s.charged > 0 {
		s.heap.Refund(s.charged)
		s.members, s.charged = nil, 0
	}
}

// remember decides, when all keys were looked at, whether members are remembered. That costs a step
// for each member of all sources. A difference of one large set and many empty ones needs no step
// for these.
func (s *state) remember(heap exec.Heap) {
	if len(s.keys) <= fewSources || s.done {
		return
	}
	switch s.op {
	case union:
	case diff:
		if s.total-s.first > s.first*(len(s.keys)-1) {
			return
		}
		s.source = 1
	default:
		return
	}
	s.seen = &seen{heap: heap, members: map[string]struct{}{}}
}

// judgeSeen is judge of a member that is looked for among those seen.
func (s *state) judgeSeen(x *slice, text []byte) (is bool) {
	x.left -= 1 + exec.LongSteps(len(text))
	switch {
	case s.op == union:
		return s.seen.add(text)
	case s.ofBatch > 0:
		s.seen.add(text)
		return false
	}
	return !s.seen.has(text)
}
