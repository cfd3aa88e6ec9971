package lists

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// sortOptions are the options of SORT and SORT_RO.
type sortOptions struct {
	by            []byte   // nil: elements are compared themselves
	gets          [][]byte // none: elements are answered themselves
	store         []byte   // nil: the result is answered
	offset, count int64    // as the client says; count is -1 without LIMIT
	desc, alpha   bool
	native        bool // BY a pattern without *: elements stay in the order that they have
}

// parseSort parses the options. If they are wrong it answers the error and ok is false.
func parseSort(r *exec.Request) (o sortOptions, ok bool) {
	o.count = -1
	fail := func(text string) (sortOptions, bool) {
		r.Fail(text)
		return o, false
	}
	for i := 2; i < len(r.Args); i++ {
		left := len(r.Args) - 1 - i
		switch option := r.Args[i]; {
		case exec.Is(option, "ASC"):
			o.desc = false
		case exec.Is(option, "DESC"):
			o.desc = true
		case exec.Is(option, "ALPHA"):
			o.alpha = true
		case exec.Is(option, "LIMIT") && left >= 2:
			if o.offset, ok = r.IntArg(i + 1); !ok {
				return o, false
			}
			if o.count, ok = r.IntArg(i + 2); !ok {
				return o, false
			}
			i += 2
		case exec.Is(option, "STORE") && left >= 1 && r.Cmd.ID == command.Sort:
			i++
			o.store = r.Args[i]
		case exec.Is(option, "BY") && left >= 1:
			i++
			o.by = r.Args[i]
			if bytes.IndexByte(o.by, '*') < 0 {
				o.native = true // whatever BY follows
			} else if !inSlotOf(r, o.by, r.Args[1]) {
				return fail(ErrSortBy)
			}
		case exec.Is(option, "GET") && left >= 1:
			i++
			if !isElement(r.Args[i]) && !inSlotOf(r, r.Args[i], r.Args[1]) {
				return fail(ErrSortGet)
			}
			o.gets = append(o.gets, r.Args[i])
		default:
			return fail(exec.ErrSyntax)
		}
	}
	if o.native {
		o.by = nil
	}
	return o, true
}

// isElement reports whether a pattern of GET stands for the element itself.
func isElement(pattern []byte) bool { return string(pattern) == "#" }

// inSlotOf reports whether all keys that a pattern makes are in the slot of a key: the pattern has
// no * in front of its tag, or the database is pinned.
func inSlotOf(r *exec.Request, pattern, key []byte) bool {
	if r.Placement.Pins(r.Database) {
		return true
	}
	open := bytes.IndexByte(pattern, '{')
	star := bytes.IndexAny(pattern, `*?[\`)
	if open >= 0 {
		if end := bytes.IndexByte(pattern[open+1:], '}'); end > 0 {
			return (star < 0 || star > open+1+end) && ring.Slot(pattern) == ring.Slot(key)
		}
	}
	return star < 0 && ring.Slot(pattern) == ring.Slot(key)
}

// bounds returns the positions of a result of length elements that LIMIT leaves: from, and how
// many.
func (o *sortOptions) bounds(length int) (from, n int) {
	start := min(max(o.offset, 0), int64(length))
	count := o.count
	if count < 0 {
		count = math.MaxInt64 - start
	}
	return int(start), int(min(count, int64(length)-start))
}

// lookups is how many keys are looked up for n elements of which so many are answered.
func (o *sortOptions) lookups(n, answered int) int {
	if o.by == nil {
		n = 0
	}
	return n + answered*len(o.gets)
}

// byPattern looks up the value of the key that a pattern makes of an element: a string, or a field
// of a hash. use gets a view of it.
func (s *sorting) byPattern(t engine.Txn, pattern, element []byte, use func(text []byte)) (found bool) {
	star := bytes.IndexByte(pattern, '*')
	if star < 0 {
		return false
	}
	behind, field := pattern[star+1:], []byte(nil)
	if i := bytes.Index(behind, []byte("->")); i >= 0 && i+2 < len(behind) {
		behind, field = behind[:i], behind[i+2:]
	}
	s.keyText = append(append(append(s.keyText[:0], pattern[:star]...), element...), behind...)
	item, found := t.Find(s.keyText)
	typ := s.types.Of(item)
	switch {
	case !found:
	case field == nil && item.Type() == engine.TypeString:
		use(item.Value())
		return true
	case field != nil && typ.Field != nil:
		var value shape.Item
		if value, found = typ.Field(t, item, field, s.now); found {
			var number shape.Decimal
			use(value.Text(&number))
		}
		return found
	}
	return false
}
