package lists

import (
	"context"
	"runtime"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// A SORT of few elements is executed in one turn. Otherwise a goroutine does it:
//
//	turn       pin the value, or copy a packed one; with BY, GET or STORE hold the partition
//	goroutine  elements from the pin, their weights, the order, what GET names: each in slices
//	turns      answer what is gathered, or store it
//
// All that it keeps is charged.

// sorting is a SORT or SORT_RO.
type sorting struct {
	sortOptions
	types   *exec.Types
	engine  *engine.Engine
	heap    exec.Heap
	section uint16
	now     int64
	version resp.Version

	value   engine.Parts // while it is pinned
	pin     *engine.ValuePin
	piece   func(v engine.Parts, pin *engine.ValuePin, place int, f func(rdb.Element)) (next int, done bool)
	length  int // elements of the value
	from, n int // of the result
	seen    int // elements that were looked at
	copied  int // bytes that were copied or parsed under the present lock
	all     []sorted
	text    []byte        // where the elements' bytes go
	long    []engine.Pin  // of elements that are not copied
	staged  engine.Staged // of a long one that is to be stored
	charged int64
	problem string

	slice    []byte        // of the reply
	reply    exec.Gathered // what was in front of it
	results  [][]byte      // for STORE; nil: what GET names is not there
	stored   int           // of them
	built    exec.Builder
	elements []rdb.Element // room for those of one step
	ordered  bool
	ran      bool // all but storing is done, or a goroutine does it
	tooLong  bool // for a turn
	keyText  []byte
}

// Memory of an element beside its bytes, and pieces in which bytes are kept.
const (
	sortedCost = 80
	firstPiece = 512
	textPiece  = 64 << 10
)

// What a turn does at most, and what the goroutine does under one lock.
const (
	sortAtOnce   = 256 // elements
	lookupAtOnce = 256 // keys
)

// lSort: SORT, SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern...] [ASC|DESC] [ALPHA]
// [STORE key]
func lSort(r *exec.Request) {
	locks := r.LockElements()
	defer locks.Release()
	s, begun := locks.State.(*sorting)
	if s == nil {
		o, ok := parseSort(r)
		if !ok {
			return
		}
		s = &sorting{sortOptions: o, types: r.Types, engine: r.Engine, heap: r.Heap, section: r.Section(), now: r.Now, version: r.Version()}
	}
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	if !begun {
		if !s.open(r, t) {
			return
		}
		if s.isLong() || !s.finish(t) {
			s.later(r, &locks)
			return
		}
	}
	if s.problem == "" && s.store != nil && !s.storeSome(r, t) {
		if !begun {
			s.keepOptions()
		}
		locks.State = s
		locks.Hold()
		locks.Stop(1, 0)
		return
	}
	locks.Release()
	s.answer(r)
	s.End()
}

// open looks the value up, and pins it or copies its elements. It reports false if it has answered.
func (s *sorting) open(r *exec.Request, t engine.Txn) (ok bool) {
	item, found := r.Find(t, r.Args[1])
	r.Lookup(found, r.Args[1])
	if !found {
		return true
	}
	typ := s.types.Of(item)
	if typ.Collection == nil || item.Type() == engine.TypeHash || item.Type() == engine.TypeStream {
		r.Fail(exec.ErrWrongType)
		return false
	}
	if s.native && s.store != nil && item.Type() == engine.TypeSet { // or what is stored would be random
		s.native, s.alpha = false, true
	}
	v, big := t.Parts(item)
	if !big {
		p := shape.ReadPacked(typ.Collection.Packed, item.Value())
		s.begin(p.Len(), item.Type())
		p.Each(0, func(_ int, first, _ shape.Item, _ int64) bool {
			var number shape.Decimal
			s.add(first.Text(&number))
			return s.problem == ""
		})
		return true
	}
	pin, err := v.PinValue()
	if err != nil {
		r.Fail(exec.ErrPinned)
		return false
	}
	s.value, s.pin, s.piece = v, pin, typ.Collection.Piece
	s.begin(typ.Collection.Len(pin.Own()), item.Type())
	return true
}

// begin begins with a value of so many elements.
func (s *sorting) begin(length int, typ engine.Type) {
	s.length = length
	s.from, s.n = s.bounds(length)
	if s.native && s.desc && typ != engine.TypeSet {
		s.from = length - s.from - s.n
	} else if typ == engine.TypeSet {
		s.desc = s.desc && !s.native
	}
}

// isLong reports whether it takes longer than a turn.
func (s *sorting) isLong() bool {
	return s.pin != nil || len(s.all) > sortAtOnce || s.lookups(len(s.all), s.n) > lookupAtOnce
}

// add adds the next element.
func (s *sorting) add(text []byte) {
	at := s.seen
	s.seen++
	if s.native && (at < s.from || at >= s.from+s.n) {
		return
	}
	s.all = append(s.all, sorted{text: s.hold(text)})
}

// hold returns a text that stays as it is: a copy, or the text itself, pinned. To compare such texts
// takes too long for a turn.
func (s *sorting) hold(text []byte) []byte {
	if len(text) >= exec.LongElement {
		if pin, ok := s.engine.PinView(text); ok {
			s.long = append(s.long, pin)
			s.tooLong = s.tooLong || !s.ran
			return text
		}
	}
	return s.keep(text)
}

// keep returns a copy of the text.
func (s *sorting) keep(text []byte) []byte {
	piece := 0
	if cap(s.text)-len(s.text) < len(text) {
		piece = max(len(text), min(2*cap(s.text), textPiece), firstPiece)
	}
	cost := int64(piece) + sortedCost
	if !s.heap.Charge(cost) {
		if s.problem = exec.ErrOOM; s.store != nil {
			s.problem = exec.Unbuilt(s.store)
		}
		return nil
	}
	s.charged += cost
	if piece > 0 {
		s.text = make([]byte, 0, piece)
	}
	s.copied += len(text)
	at := len(s.text)
	s.text = append(s.text, text...)
	return s.text[at:len(s.text):len(s.text)]
}

// later has a goroutine do the rest, or all but storing.
func (s *sorting) later(r *exec.Request, locks *exec.KeyLocks) {
	s.keepOptions()
	if s.by != nil || len(s.gets) > 0 || s.store != nil {
		locks.Hold()
	}
	if s.store != nil {
		locks.State = s
		locks.Stop(1, 0)
		return
	}
	r.Host.GatherLater(func(ctx context.Context, reply *exec.Gathered) {
		defer s.End()
		if s.RunBetween(ctx); s.problem != "" {
			reply.Head = resp.AppendError(nil, s.problem)
			return
		}
		*reply, s.reply = s.reply, exec.Gathered{}
	})
}

// keepOptions copies the options, which are views of the input.
func (s *sorting) keepOptions() {
	if s.by != nil {
		s.by = s.keep(s.by)
	}
	for i := range s.gets {
		s.gets[i] = s.keep(s.gets[i])
	}
	if s.store != nil {
		s.store = append([]byte{}, s.keep(s.store)...)
	}
}

// RunBetween does what takes long, in a goroutine.
func (s *sorting) RunBetween(ctx context.Context) {
	if s.ran {
		s.stageNext(ctx)
		return
	}
	s.ran = true
	s.collect(ctx)
	s.compute(ctx, func(do func(t engine.Txn)) {
		t := s.engine.Lock(s.section, s.now)
		s.copied = 0
		do(t)
		t.Unlock()
		s.flush()
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	})
	s.flush()
	s.stageNext(ctx)
	if ctx.Err() != nil {
		s.problem = exec.ErrBusy
	}
}

// collect reads the elements from the pin.
func (s *sorting) collect(ctx context.Context) {
	if s.pin == nil {
		return
	}
	for place, done := 0, false; !done && s.problem == ""; runtime.Gosched() {
		switch {
		case exec.Step(ctx) != nil:
			return
		case !s.pin.Lock():
			s.problem = exec.ErrPinned
			return
		}
		s.copied = 0
		for until := s.seen + sortAtOnce; !done && s.seen < until && s.copied < textPiece; {
			place, done = s.piece(s.value, s.pin, place, func(x rdb.Element) { s.add(x.First) })
		}
		s.pin.Unlock()
	}
	s.pin.Release()
	s.pin = nil
}

// finish is RunBetween in one turn. It reports false if that takes too long after all.
func (s *sorting) finish(t engine.Txn) bool {
	s.copied = 0
	s.compute(context.Background(), func(do func(t engine.Txn)) { do(t) })
	if !s.tooLong {
		s.ran = true
		return true
	}
	s.slice, s.results, s.tooLong = nil, nil, false
	return false
}

// isFull reports whether the present lock has been held for as many bytes as it may be. In a turn,
// which has no other lock, the command takes too long then.
func (s *sorting) isFull() bool {
	full := s.copied >= textPiece
	s.tooLong = s.tooLong || full && !s.ran
	return full
}

// compute weighs the elements, orders them, and gathers the result. under calls a function under
// the lock of the partition.
func (s *sorting) compute(ctx context.Context, under func(do func(t engine.Txn))) {
	if !s.ordered {
		if !s.native {
			if s.weighAll(ctx, under); s.tooLong {
				return
			}
			s.order(ctx, s.all)
			s.all = s.all[min(s.from, len(s.all)):min(s.from+s.n, len(s.all))]
		} else if s.desc {
			slices.Reverse(s.all)
		}
		s.ordered = true
	}
	s.gather(ctx, under)
}

// weighAll finds by what the elements are compared.
func (s *sorting) weighAll(ctx context.Context, under func(do func(t engine.Txn))) {
	weigh := func(x *sorted, text []byte) {
		if s.alpha {
			x.by = s.hold(text)
			if x.by == nil {
				x.by = []byte{}
			}
			return
		}
		if s.copied += len(text); !x.weigh(text) {
			s.problem = ErrSortWeight
		}
	}
	if s.by == nil {
		for i := range s.all {
			if x := &s.all[i]; !s.alpha {
				weigh(x, x.text)
			}
		}
		return
	}
	for i := 0; i < len(s.all) && s.problem == "" && !s.tooLong && ctx.Err() == nil; {
		under(func(t engine.Txn) {
			for end := min(i+lookupAtOnce, len(s.all)); i < end && !s.isFull(); i++ {
				x := &s.all[i]
				s.byPattern(t, s.by, x.text, func(text []byte) { weigh(x, text) })
			}
		})
	}
}

// answer answers the command.
func (s *sorting) answer(r *exec.Request) {
	switch {
	case s.problem != "":
		r.Fail(s.problem)
	case s.store != nil:
		r.ReplyInt(int64(len(s.results)))
	case r.Room(len(s.slice)):
		r.Out = append(r.Out, s.slice...)
	}
}

// End frees what the command has kept.
func (s *sorting) End() {
	if s.pin != nil {
		s.pin.Release()
		s.pin = nil
	}
	for i := range s.long {
		s.long[i].Release()
	}
	if s.staged.Live() {
		s.staged.Discard()
	}
	s.long = nil
	s.heap.Refund(s.charged)
	s.charged, s.all, s.results, s.text = 0, nil, nil, nil
	s.reply.End()
	s.built.End(s.engine, s.section, s.now)
}
