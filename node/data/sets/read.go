package sets

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sCard: SCARD key
func sCard(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if s, ok := read(r, t, r.Args[1]); ok {
		r.ReplyInt(int64(s.length()))
	}
}

// sIsMember: SISMEMBER key member
func sIsMember(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if s, ok := read(r, t, r.Args[1]); ok {
		r.ReplyBool(s.has(r.Args[2]))
	}
}

// sMIsMember: SMISMEMBER key member...
func sMIsMember(r *exec.Request) {
	run, ok := r.LockElementRun(r.Args[2:], 1)
	if !ok {
		return
	}
	defer run.Release()
	s, ok := open(r, run.Txn, r.Args[1])
	if !ok {
		return
	}
	if run.IsFirst() {
		r.Lookup(s.found, s.key)
		r.Out = resp.AppendArray(r.Out, len(r.Args)-2)
	}
	s.replyHas(r.Args[2+run.First : 2+run.End])
	if !run.GoesOn(0) {
		run.Whole()
	}
}

// atOnce is how many members of a packed value are looked for in one pass.
const atOnce = 16

// replyHas answers for each member whether the set has it.
func (s *set) replyHas(members [][]byte) {
	r := s.r
	if !r.Room(len(members) * len(":1\r\n")) {
		return
	}
	if s.big || !s.found {
		for _, member := range members {
			r.ReplyBool(s.has(member))
		}
		return
	}
	var at [atOnce]int
	for len(members) > 0 {
		few := members[:min(len(members), atOnce)]
		s.Find(few, at[:])
		for i := range few {
			r.ReplyBool(at[i] >= 0)
		}
		members = members[len(few):]
	}
}

// sMembers: SMEMBERS key
func sMembers(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if s, ok := read(r, t, r.Args[1]); ok {
		s.replyAll()
	}
}

// replyAll answers all members. It reports false if it has answered an error.
func (s *set) replyAll() bool {
	r := s.r
	switch {
	case !s.found:
		r.Out = resp.AppendSet(r.Out, r.Version(), 0)
	case s.big && exec.IsLong(s.table.Len(), s.table.V.Bytes()):
		return s.replyPinned(resp.AppendSet(nil, r.Version(), s.table.Len()))
	case !r.Room(exec.LineRoom + int(s.bytes()) + memberRoom*s.length()):
		return false
	default:
		r.Out = resp.AppendSet(r.Out, r.Version(), s.length())
		s.each(func(member shape.Item) { r.Out = appendMember(r.Out, member) })
	}
	return true
}

// memberRoom is the most bytes that a member takes in a reply beyond its own.
const memberRoom = 24

func appendMember(dst []byte, member shape.Item) []byte {
	var number shape.Decimal
	return resp.AppendBulk(dst, member.Text(&number))
}

// each calls f for all members of a set that is not long.
func (s *set) each(f func(member shape.Item)) {
	if s.big {
		for number := range s.table.V.Len(blocks) {
			s.table.Each(number, func(e shape.Element) { f(e.Key) })
		}
		return
	}
	s.Each(0, func(_ int, member, _ shape.Item, _ int64) bool {
		f(member)
		return true
	})
}

// piece calls f for some members, a few hundred at most: those of a block of a big set. The first
// place is 0. It reports whether they are the last ones.
func (s *set) piece(place int, f func(member shape.Item)) (done bool) {
	switch {
	case !s.found:
		return true
	case !s.big:
		s.each(f)
		return true
	}
	s.table.Each(place, func(e shape.Element) { f(e.Key) })
	return place+1 >= s.table.V.Len(blocks)
}

// replyPinned answers all members of a long set in slices, behind head. It reports false if it has
// answered an error.
func (s *set) replyPinned(head []byte) bool {
	t, number := s.table, 0
	return s.r.ReplyPinnedText(t.V, head, func(pin *engine.ValuePin, to *exec.Text) (done bool) {
		for t.Pin = pin; number < pin.Len(blocks) && !to.IsFull(); number++ {
			t.Each(number, func(e shape.Element) { to.Element(e.Key) })
		}
		return number == pin.Len(blocks)
	})
}
