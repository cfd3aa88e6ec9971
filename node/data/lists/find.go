package lists

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// lPos: LPOS key element [RANK rank] [COUNT count] [MAXLEN length]
func lPos(r *exec.Request) {
	s, ok := parsePos(r)
	if !ok {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	l, ok := read(r, t, r.Args[1])
	if !ok {
		return
	}
	s.begin(l.len())
	if !r.UseElements(t) {
		return
	}
	s.element = r.Args[2]
	if l.big && s.left > searchAtOnce/searchCost(len(s.element)) {
		s.searchPinned(r, l.tree.V)
		return
	}
	places := r.Worker.Body[:0]
	left := math.MaxInt // there are few
	look := func(x shape.Item) bool {
		var more bool
		places, more = s.look(places, x, &left)
		return more
	}
	switch {
	case s.left == 0:
	case s.back:
		l.eachBack(s.next, look)
	default:
		l.each(0, look)
	}
	r.Out = append(s.appendHead(r.Out, r.Version()), places...)
	r.Worker.KeepBody(places)
}

// posSearch is an LPOS.
type posSearch struct {
	comparison
	rank    int // matches that are passed, plus 1
	count   int // matches to be answered, or math.MaxInt
	several bool
	maxLen  int
	back    bool

	length int
	left   int // elements to be looked at
	next   int // position of the next of them; plus 1 if back
	found  int // matches that are answered
}

// parsePos parses the options. If they are wrong it answers the error and ok is false.
func parsePos(r *exec.Request) (s posSearch, ok bool) {
	s = posSearch{rank: 1, count: 1, maxLen: math.MaxInt}
	for i := 3; i < len(r.Args); i += 2 {
		n := 0
		switch option := r.Args[i]; {
		case i+1 == len(r.Args):
			r.Fail(exec.ErrSyntax)
			return s, false
		case exec.Is(option, "RANK"):
			if ok = s.parseRank(r, i+1); !ok {
				return s, false
			}
		case exec.Is(option, "COUNT"):
			if n, ok = intArg(r, i+1, 0, ErrCount); !ok {
				return s, false
			}
			s.count, s.several = orAll(n), true
		case exec.Is(option, "MAXLEN"):
			if n, ok = intArg(r, i+1, 0, ErrMaxLen); !ok {
				return s, false
			}
			s.maxLen = orAll(n)
		default:
			r.Fail(exec.ErrSyntax)
			return s, false
		}
	}
	return s, true
}

// orAll returns n, or the largest number if n is 0.
func orAll(n int) int {
	if n == 0 {
		return math.MaxInt
	}
	return n
}

func (s *posSearch) parseRank(r *exec.Request, i int) (ok bool) {
	rank, ok := r.IntArg(i)
	switch {
	case !ok:
		return false
	case rank == math.MinInt64:
		r.Fail(ErrRange)
		return false
	case rank == 0:
		r.Fail(ErrRank)
		return false
	}
	s.back, s.rank = rank < 0, int(max(rank, -rank))
	return true
}

// begin begins with a list of some length.
func (s *posSearch) begin(length int) {
	s.length, s.left, s.next = length, min(length, s.maxLen), 0
	if s.back {
		s.next = length
	}
}

// look looks at the next element, and appends its position if it is to be answered. It returns
// false after the last one, and when nothing is left for this run.
func (s *posSearch) look(places []byte, x shape.Item, left *int) (_ []byte, more bool) {
	equal, ended := s.is(x, left)
	if !ended {
		return places, false
	}
	position := s.next
	if s.back {
		position--
		s.next--
	} else {
		s.next++
	}
	s.left--
	if equal {
		if s.rank--; s.rank <= 0 {
			places = resp.AppendInt(places, int64(position))
			if s.found++; s.found == s.count {
				s.left = 0
			}
		}
	}
	return places, s.left > 0
}

// appendHead appends what of the reply is in front of the positions.
func (s *posSearch) appendHead(dst []byte, version resp.Version) []byte {
	switch {
	case s.several:
		return resp.AppendArray(dst, s.found)
	case s.found == 0:
		return resp.AppendNull(dst, version)
	}
	return dst
}

// searchPinned searches a long list in slices, as it is now.
func (s posSearch) searchPinned(r *exec.Request, v engine.Parts) {
	version := r.Version()
	element, end, ok := r.KeepElement(2)
	if !ok {
		return
	}
	s.element = element
	r.ReplyPinnedCounted(v, func() []byte { return s.appendHead(nil, version) },
		func(pin *engine.ValuePin, dst []byte) ([]byte, bool) {
			dst = s.slice(pin, dst)
			return dst, s.left == 0
		}, end)
}

// slice looks at the elements of one lock.
func (s *posSearch) slice(pin *engine.ValuePin, places []byte) []byte {
	tree, left := shape.PinnedList(pin), searchAtOnce
	look := func(x shape.Entry) bool {
		var more bool
		places, more = s.look(places, x.First, &left)
		return more
	}
	if s.back {
		tree.WalkBack(s.next, look)
	} else {
		tree.Walk(s.next, look)
	}
	return places
}
