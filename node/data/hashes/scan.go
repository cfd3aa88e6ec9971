package hashes

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

const (
	defaultScanCount = 10
	maxScanCount     = 4096      // COUNT is a hint: the client goes on with the cursor
	maxScanBytes     = 256 << 10 // of a reply that goes on
)

// scanQuery is what an HSCAN asks for.
type scanQuery struct {
	count   int
	pattern *glob.Pattern // nil: every field
	what    what
}

// parseScan reads the options of HSCAN, and returns what is wrong.
func parseScan(args [][]byte) (q scanQuery, problem string) {
	q = scanQuery{count: defaultScanCount, what: fields | values}
	for i := 0; i < len(args); i++ {
		last := i == len(args)-1
		switch {
		case exec.Is(args[i], "COUNT") && !last:
			i++
			n, ok := resp.ParseInt(args[i])
			if !ok {
				return q, exec.ErrNotInteger
			}
			if n < 1 {
				return q, exec.ErrSyntax
			}
			q.count = int(min(n, maxScanCount))
		case exec.Is(args[i], "MATCH") && !last:
			i++
			q.pattern = nil
			if string(args[i]) != "*" {
				var err error
				if q.pattern, err = glob.Compile(args[i]); err != nil {
					return q, err.Error()
				}
			}
		case exec.Is(args[i], "NOVALUES"):
			q.what = fields
		default:
			return q, exec.ErrSyntax
		}
	}
	return q, ""
}

// hScan: HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]
func hScan(r *exec.Request) {
	cursor, ok := member.ParseCursor(r.Args[2])
	if !ok {
		r.Fail(errCursor)
		return
	}
	q, problem := parseScan(r.Args[3:])
	withHash(r, func(h hash) {
		if h.found && problem != "" {
			r.Fail(problem)
			return
		}
		body, found, next := q.scan(&h, uint64(cursor), r.Worker.Body[:0])
		defer r.Worker.KeepBody(body)
		if !r.Room(len(body) + 2*exec.LineRoom) {
			return
		}
		r.Out = resp.AppendArray(r.Out, 2)
		r.Out = resp.AppendBulk(r.Out, strconv.AppendUint(r.Worker.Number[:0], next, 10))
		r.Out = append(resp.AppendArray(r.Out, found), body...)
	})
}

// scan appends the fields from a cursor on, and returns how many strings there are, and the next
// cursor.
func (q *scanQuery) scan(h *hash, cursor uint64, dst []byte) (body []byte, found int, next uint64) {
	left := q.count
	visit := func(field, value shape.Item) {
		left--
		var number shape.Decimal
		if text := field.Text(&number); q.pattern != nil {
			left -= q.pattern.Cost(text) - 1
			if !q.pattern.Match(text) {
				return
			}
		}
		dst = q.what.append(dst, field, value)
		found++
	}
	switch {
	case !h.found:
	case h.big:
		for next = cursor; left > 0 && len(dst) < maxScanBytes; {
			next = h.table.Scan(next, 1, func(e shape.Element) { visit(e.Key, e.Value) })
			if next == 0 {
				break
			}
		}
	default:
		h.packed.Each(0, func(_ int, field, value shape.Item, _ int64) bool {
			visit(field, value)
			return true
		})
	}
	if q.what == fields|values {
		found *= 2
	}
	return dst, found, next
}
