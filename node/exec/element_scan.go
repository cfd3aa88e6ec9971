package exec

import (
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// ElementScan is what HSCAN, SSCAN or ZSCAN asks for.
type ElementScan struct {
	NoValues bool

	left    int           // about so many elements are still visited
	pattern *glob.Pattern // nil: every element. It has a view of the command's arguments
}

const (
	defaultElementCount = 10
	// maxElementCount bounds how many elements one call visits under the shard's lock. As in Redis,
	// COUNT is a hint: the client continues with the cursor.
	maxElementCount = 4096
	// maxElementBytes is from how many bytes of its reply on a call visits no further block.
	maxElementBytes = 256 << 10

	errCursor = "ERR invalid cursor"
)

// ScanCursor parses the cursor of HSCAN, SSCAN or ZSCAN, argument 2. If it is invalid, ScanCursor
// answers the error and ok is false.
func (r *Request) ScanCursor() (cursor uint64, ok bool) {
	c, ok := member.ParseCursor(r.Args[2])
	if !ok {
		r.Fail(errCursor)
	}
	return uint64(c), ok
}

// ScanOptions parses the options behind the cursor. mayOmit: NOVALUES is one. If they are wrong,
// ScanOptions answers the error and ok is false. As in Redis, nobody looks at the options of a key
// that is missing.
func (r *Request) ScanOptions(mayOmit bool) (q ElementScan, ok bool) {
	q.left = defaultElementCount
	for args := r.Args[3:]; len(args) > 0; {
		more := len(args) > 1
		switch {
		case Is(args[0], "COUNT") && more:
			n, ok := resp.ParseInt(args[1])
			if !ok {
				r.Fail(ErrNotInteger)
				return q, false
			}
			if n < 1 {
				r.Fail(ErrSyntax)
				return q, false
			}
			q.left = int(min(n, maxElementCount))
			args = args[2:]
		case Is(args[0], "MATCH") && more:
			q.pattern = nil
			if string(args[1]) != "*" {
				var err error
				if q.pattern, err = glob.Compile(args[1]); err != nil {
					r.Fail(err.Error())
					return q, false
				}
			}
			args = args[2:]
		case Is(args[0], "NOVALUES") && mayOmit:
			q.NoValues = true
			args = args[1:]
		default:
			r.Fail(ErrSyntax)
			return q, false
		}
	}
	return q, true
}

// Matches reports whether the query asks for an element, and counts it and what the pattern costs. A
// view of the element is enough.
func (q *ElementScan) Matches(element []byte) bool {
	q.left -= q.pattern.Cost(element)
	return q.pattern == nil || q.pattern.Match(element)
}

// Weight is what a key and its element weigh in a scan (shape.Table.Scan), of which so many bytes are copied:
// what the pattern costs beyond the visit, which Matches counts, weighs as well.
func (q *ElementScan) Weight(key shape.Item, copied int) int {
	return copied + (q.pattern.Cost(key.Long())-1)*patternWeight
}

// patternWeight is how many bytes are copied in the time of a unit of glob.Pattern.Cost.
const patternWeight = 4 << 10

// Charge counts as many elements more, for what takes longer to answer.
func (q *ElementScan) Charge(elements int) { q.left -= elements }

// IsFull reports whether a call whose reply has so many bytes ends, after it has passed some entries
// without asking Matches.
func (q *ElementScan) IsFull(passed, bytes int) bool {
	q.left -= passed
	return q.left <= 0 || bytes >= maxElementBytes
}

// ReplyScan answers a call: the cursor where to go on, 0 at the end, and strings, n of them, as
// bulk strings.
func (r *Request) ReplyScan(next uint64, n int, strings []byte) {
	if !r.Room(2*LineRoom + len(strings)) {
		return
	}
	r.replyScanHead(next, n)
	r.Out = append(r.Out, strings...)
}

// ReplyScanText is ReplyScan of strings that may be long.
func (r *Request) ReplyScanText(next uint64, n int, strings *Text) {
	if !r.Room(2 * LineRoom) {
		strings.Drop()
		return
	}
	r.replyScanHead(next, n)
	r.ReplyText(strings)
}

func (r *Request) replyScanHead(next uint64, n int) {
	r.Out = resp.AppendArray(r.Out, 2)
	var number [20]byte
	r.Out = resp.AppendBulk(r.Out, member.Cursor(next).Append(number[:0]))
	r.Out = resp.AppendArray(r.Out, n)
}
