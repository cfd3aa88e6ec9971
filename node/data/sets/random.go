package sets

import (
	"math"
	"math/rand/v2"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// any returns a member, each with the same probability. The set has one at least.
func (s *set) any() shape.Item {
	if s.big {
		e, _ := s.table.Random(rand.Uint32N)
		return e.Key
	}
	return s.Item(rand.IntN(s.Len()), 0)
}

// sPop: SPOP key [count]
func sPop(r *exec.Request) {
	switch len(r.Args) {
	case 2:
		popOne(r)
	case 3:
		popSome(r)
	default:
		r.Fail(exec.ErrSyntax)
	}
}

func popOne(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := open(r, t, r.Args[1])
	if !ok {
		return
	}
	r.Worker.Count.Lookup(s.found)
	if !s.found {
		r.ReplyNull()
		return
	}
	start := len(r.Out)
	member := s.any()
	if !r.Room(member.Size() + exec.LineRoom) {
		return
	}
	r.ReplyElement(member)
	if err := s.pop(member); err != nil {
		r.Undo(start)
		r.ReplyValueError(err)
		return
	}
	r.NotifyLeft(t, keyevent.Set, "spop", s.key)
}

// pop removes a member of the set. The item is void then.
func (s *set) pop(member shape.Item) error {
	var number shape.Decimal
	text := append(s.r.Worker.Body[:0], member.Text(&number)...)
	defer s.r.Worker.KeepBody(text)
	members := [1][]byte{text}
	if s.big {
		s.removeBig(members[:])
		return nil
	}
	_, err := s.remove(members[:])
	return err
}

// popsAtOnce is how many members a SPOP removes in one run.
const popsAtOnce = 128

// popSome removes so many members, one after the other, each chosen among those that are left.
func popSome(r *exec.Request) {
	count, ok := resp.ParseInt(r.Args[2])
	if !ok || count < 0 {
		r.Fail(errPositive)
		return
	}
	locks := r.LockElements()
	defer locks.Release()
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	s, ok := open(r, t, r.Args[1])
	if !ok {
		return
	}
	n := s.length()
	if locks.First == 0 {
		r.Worker.Count.Lookup(s.found)
		switch {
		case count == 0 || !s.found:
			r.Out = resp.AppendSet(r.Out, r.Version(), 0)
			return
		case int64(n) <= count:
			popAll(&s)
			return
		}
		r.Out = resp.AppendSet(r.Out, r.Version(), int(count))
	} else if int64(n) < count-int64(locks.First) {
		r.Fail(exec.ErrGone)
		return
	}
	end := min(int(count), locks.First+popsAtOnce)
	var fits bool
	var err error
	if s.big {
		var popped int
		popped, fits = s.popBig(end - locks.First)
		end = locks.First + popped
	} else {
		fits, err = s.popPacked(end - locks.First)
	}
	switch {
	case !fits:
	case err != nil:
		r.ReplyValueError(err)
	case end < int(count):
		locks.Hold()
		locks.Stop(end, 0)
	default:
		r.NotifyLeft(t, keyevent.Set, "spop", s.key)
		locks.Whole()
	}
}

// popAll answers all members and deletes the key. A long reply is made from a pin, which outlives
// the value.
func popAll(s *set) {
	if s.replyAll() {
		s.txn.Delete(s.key)
		s.r.NotifyLeft(s.txn, keyevent.Set, "spop", s.key)
	}
}

// popBig removes n members, or fewer that are long, of a set with parts that has more. It stops before
// one for which the reply has no room, and reports false.
func (s *set) popBig(n int) (popped int, fits bool) {
	t, w := &s.table, &s.r.Worker.Work
	text, begun := s.r.Worker.Body[:0], len(s.r.Out)
	for fits = true; popped < n && len(s.r.Out)-begun < exec.RunBytes; popped++ {
		var number shape.Decimal
		e, _ := t.Random(rand.Uint32N)
		if fits = s.r.Room(e.Key.Size() + exec.LineRoom); !fits {
			break
		}
		s.r.ReplyElement(e.Key)
		text = append(text[:0], e.Key.Text(&number)...)
		t.Delete(text)
		t.NoteDelete(w, text)
	}
	s.r.Worker.KeepBody(text)
	s.removedBig(popped)
	return popped, fits
}

// popPacked removes n members of a packed set, or none if the reply has no room for them.
func (s *set) popPacked(n int) (fits bool, err error) {
	p, start := &s.r.Worker.Pack, len(s.r.Out)
	p.Open(&shape.PackedSet, s.item.Value(), 0)
	for range n {
		at := rand.IntN(p.Len())
		member := p.Item(at, 0)
		if !s.r.Room(member.Size() + exec.LineRoom) {
			return false, nil
		}
		s.r.ReplyElement(member)
		p.Delete(at)
	}
	if err = s.store(p); err != nil {
		s.r.Undo(start)
	}
	return true, err
}

// sRandMember: SRANDMEMBER key [count]
func sRandMember(r *exec.Request) {
	switch len(r.Args) {
	case 2:
		randOne(r)
	case 3:
		randSome(r)
	default:
		r.Fail(exec.ErrSyntax)
	}
}

func randOne(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := read(r, t, r.Args[1])
	switch {
	case !ok:
	case !s.found:
		r.ReplyNull()
	default:
		r.ReplyElement(s.any())
	}
}

// randAtOnce is how many random members are chosen under one lock.
const randAtOnce = 256

func randSome(r *exec.Request) {
	count, ok := r.IntArg(2)
	switch {
	case !ok:
		return
	case count < -math.MaxInt64:
		r.Fail(errRange)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := read(r, t, r.Args[1])
	if !ok {
		return
	}
	n := int64(s.length())
	switch {
	case !s.found || count == 0:
		r.Out = resp.AppendArray(r.Out, 0)
	case count < -randAtOnce || count < 0 && s.isLong(-count): // a positive one could overflow
		s.replyAnyOf(-count)
	case count < 0:
		r.Out = resp.AppendArray(r.Out, int(-count))
		for range -count {
			r.ReplyElement(s.any())
		}
	case count >= n:
		s.replyArray()
	case s.big && !s.isLong(count) && s.table.DrawSome(&r.Worker.Work, int(min(count, n)), rand.Uint32N):
		r.Out = resp.AppendArray(r.Out, int(count))
		s.table.Drawn(&r.Worker.Work, func(e shape.Element) { r.ReplyElement(e.Key) })
	case s.big && exec.IsLong(int(n), s.table.V.Bytes()):
		s.replySample(int(count))
	default:
		s.replySampleNow(int(count))
	}
}

// isLong reports whether so many members are answered in slices.
func (s *set) isLong(count int64) bool {
	return s.big && exec.IsLong(int(count), s.table.V.Bytes()/int64(s.table.Len())*count)
}

// replyAnyOf answers many members, of which some may be the same.
func (s *set) replyAnyOf(count int64) {
	r := s.r
	head := resp.AppendArray(nil, int(count))
	if s.big {
		t := s.table
		r.ReplyPinned(t.V, head, func(pin *engine.ValuePin, dst []byte) ([]byte, bool) { // copied, so that memory bounds it
			t.Pin = pin
			for n := 0; n < randAtOnce && count > 0 && !exec.SliceIsFull(dst); n++ {
				e, _ := t.Random(rand.Uint32N)
				dst = appendMember(dst, e.Key)
				count--
			}
			return dst, count == 0
		})
		return
	}
	value := append([]byte(nil), s.item.Value()...)
	r.ReplySlices(head, func(dst []byte) ([]byte, bool) {
		p := shape.ReadPacked(&shape.PackedSet, value)
		for ; count > 0 && !exec.SliceIsFull(dst); count-- {
			dst = appendMember(dst, p.Item(rand.IntN(p.Len()), 0))
		}
		return dst, count == 0
	})
}

// replyArray answers all members as an array.
func (s *set) replyArray() {
	r := s.r
	if s.big && exec.IsLong(s.table.Len(), s.table.V.Bytes()) {
		s.replyPinned(resp.AppendArray(nil, s.table.Len()))
		return
	}
	if r.Room(exec.LineRoom + int(s.bytes()) + memberRoom*s.length()) {
		r.Out = resp.AppendArray(r.Out, s.length())
		s.each(func(member shape.Item) { r.Out = appendMember(r.Out, member) })
	}
}

func (s *set) replySampleNow(count int) {
	x := exec.Sample{Left: s.length(), Want: count}
	s.r.Out = resp.AppendArray(s.r.Out, count)
	s.each(func(member shape.Item) {
		if x.Takes() {
			s.r.ReplyElement(member)
		}
	})
}

// replySample is replySampleNow in slices.
func (s *set) replySample(count int) {
	t, number, x := s.table, 0, exec.Sample{Left: s.table.Len(), Want: count}
	s.r.ReplyPinnedText(t.V, resp.AppendArray(nil, count), func(pin *engine.ValuePin, to *exec.Text) (done bool) {
		t.Pin = pin
		for blocksLeft := randAtOnce; blocksLeft > 0 && number < pin.Len(blocks) && !to.IsFull(); blocksLeft-- {
			t.Each(number, func(e shape.Element) {
				if x.Takes() {
					to.Element(e.Key)
				}
			})
			number++
		}
		return number == pin.Len(blocks)
	})
}
