package exec

import (
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// ElementScan is what HSCAN, SSCAN or ZSCAN asks for.
type ElementScan struct {
	Count    int // about how many elements are visited
	NoValues bool

	pattern *glob.Pattern // nil: every element. It has a view of the command's arguments
}

const (
	defaultElementCount = 10
	// maxElementCount bounds how many elements one call visits under the shard's lock. As in Redis,
	// COUNT is a hint: the client continues with the cursor.
	maxElementCount = 1000
	// maxElementBytes is from how many bytes of its reply on a call visits no further block.
	maxElementBytes = 64 << 10

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
	q.Count = defaultElementCount
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
			q.Count = int(min(n, maxElementCount))
			args = args[2:]
		case Is(args[0], "MATCH") && more:
			var err error
			if q.pattern, err = glob.Compile(args[1]); err != nil {
				r.Fail(err.Error())
				return q, false
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

// Matches reports whether the query asks for an element. A view of it is enough.
func (q *ElementScan) Matches(element []byte) bool {
	return q.pattern == nil || q.pattern.Match(element)
}

// IsFull reports whether a call that has visited so many elements, and whose reply has so many
// bytes, ends.
func (q *ElementScan) IsFull(visited, bytes int) bool {
	return visited >= q.Count || bytes >= maxElementBytes
}

// ReplyScan answers a call: the cursor where to go on, 0 at the end, and strings, n of them, as
// bulk strings.
func (r *Request) ReplyScan(next uint64, n int, strings []byte) {
	if !r.Room(2*LineRoom + len(strings)) {
		return
	}
	r.Out = resp.AppendArray(r.Out, 2)
	var number [20]byte
	r.Out = resp.AppendBulk(r.Out, member.Cursor(next).Append(number[:0]))
	r.Out = append(resp.AppendArray(r.Out, n), strings...)
}
