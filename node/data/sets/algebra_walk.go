package sets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// operation is what set algebra makes of the sets of several keys, the sources.
type operation uint8

const (
	inter operation = iota
	union
	diff
)

// plan is what a command asks for.
//
//	SINTERSTORE, SUNION … ─> run ─┬─ few members: under the lock of the command
//	                              └─ many: a goroutine, in slices, while the command holds the partition
//	                                   └> members, one by one ─┬─ members, number
//	                                                           └─ stored: exec.Builder, then the key
//
// inter walks the smallest source and looks for each member in the others; diff walks the first
// one. union walks all of them, and passes a member over that an earlier source has. With many
// sources, union and diff remember members instead (algebra_seen.go), and take about a step for each
// member. Between two slices others may use the shard, but not the partition. Nothing in that
// changes, expires or is evicted, so the places in the sources stay valid. Items are looked up again
// in each slice, since cells may move.
type plan struct {
	op   operation
	keys [][]byte
	most int // how many members are wanted; 0: all
}

// state is how far a plan was executed.
type state struct {
	plan
	exec.Notices

	looked  int   // so many keys were looked at
	total   int   // members of all sources
	bytes   int64 // of the big ones
	first   int   // of the first one
	missing bool
	wrong   bool // a source has another type
	least   int  // the source with the fewest members
	fewest  int
	hits    int

	taken         int // members of the place that were in earlier batches, because they are long
	source, place int // where the walk goes on
	batch         []member
	ofBatch       int    // the source that the batch is of
	seen          *seen  // not nil: members are looked for there
	text          []byte // of the batch
	at            int    // in the batch
	in            int    // the source in which batch[at] is looked for next
	found         int
	done          bool
}

// member is one of a batch: its place in the text.
type member struct{ from, to int }

// slice is the right to go on for a few steps.
type slice struct {
	engine.Txn
	left int // steps
}

// look looks at the keys. It reports whether all were looked at.
func (s *state) look(x *slice) (done bool) {
	keys := s.keys
	for ; s.looked < len(keys) && x.left > 0; s.looked++ {
		x.left--
		item, found := x.Find(keys[s.looked])
		if !found {
			s.missing = true
			s.NotifyMiss(keys[s.looked])
			continue
		}
		s.hits++
		if item.Type() != engine.TypeSet {
			s.wrong = true
			continue
		}
		source := setOf(x.Txn, item)
		n := source.length()
		if source.big {
			s.bytes += source.bytes()
		}
		if s.looked == 0 {
			s.first = n
		}
		if s.total += n; s.fewest == 0 || n < s.fewest {
			s.least, s.fewest = s.looked, n
		}
	}
	if s.looked < len(keys) {
		return false
	}
	switch s.op {
	case inter:
		s.source = s.least
		s.done = s.missing
	case diff:
		s.source = 0
	}
	return true
}

// steps is about how many steps it will take.
func (s *state) steps() int {
	long := exec.LongSteps(int(s.bytes))
	switch s.op {
	case inter:
		return long + s.fewest*len(s.keys)
	default:
		return long + s.total*len(s.keys)
	}
}

// sourceOf is the set of a key, perhaps an empty one.
func (s *state) sourceOf(x *slice, i int) set {
	item, found := x.Peek(s.keys[i])
	if !found {
		return set{}
	}
	return setOf(x.Txn, item)
}

// walk goes on until the slice has ended, or all is done. emit is called with each member of the
// result, which is valid until it returns; it reports whether the walk may go on in this slice.
func (s *state) walk(x *slice, emit func(member []byte) (goOn bool)) {
	for !s.done {
		if s.at == len(s.batch) {
			if x.left <= 0 {
				return
			}
			s.next(x)
			continue
		}
		decided, is := s.judge(x)
		if !decided {
			return
		}
		m := s.batch[s.at]
		s.at++
		s.in = 0
		if !is {
			continue
		}
		s.found++
		goOn := emit(s.text[m.from:m.to])
		if s.most > 0 && s.found == s.most {
			s.done = true
		}
		if !goOn {
			return
		}
	}
}

// next makes the next batch.
func (s *state) next(x *slice) {
	s.batch, s.text, s.at = s.batch[:0], s.text[:0], 0
	if s.source == len(s.keys) {
		s.done = true
		return
	}
	s.ofBatch = s.source
	source := s.sourceOf(x, s.source)
	skip, more := s.taken, false
	ended := source.piece(s.place, func(item shape.Item) {
		switch from := len(s.text); {
		case skip > 0:
			skip--
		case from >= exec.RunBytes:
			more = true
		default:
			s.text = item.Append(s.text)
			s.batch = append(s.batch, member{from, len(s.text)})
		}
	})
	x.left -= 1 + len(s.batch) + exec.LongSteps(len(s.text))
	if more {
		s.taken += len(s.batch)
		return
	}
	s.place, s.taken = s.place+1, 0
	if !ended {
		return
	}
	s.place = 0
	switch s.source++; {
	case s.op == diff && s.seen != nil && s.ofBatch > 0:
		if s.source == len(s.keys) {
			s.source = 0
		}
	case s.op != union:
		s.source = len(s.keys)
	}
}

// judge decides whether the member at hand is in the result. decided is false if the slice has
// ended before.
func (s *state) judge(x *slice) (decided, is bool) {
	m := s.batch[s.at]
	if s.seen != nil {
		return true, s.judgeSeen(x, s.text[m.from:m.to])
	}
	for ; s.in < len(s.keys); s.in++ {
		if s.in == s.ofBatch {
			if s.op == union {
				return true, true // sources behind do not matter
			}
			continue
		}
		if x.left <= 0 {
			return false, false
		}
		x.left -= 1 + exec.LongSteps(m.to-m.from)
		source := s.sourceOf(x, s.in)
		if source.has(s.text[m.from:m.to]) != (s.op == inter) {
			return true, false
		}
	}
	return true, true
}
