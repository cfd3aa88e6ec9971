package node

import (
	"strings"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	defaultScanCount = 10
	// maxScanCount bounds what one SCAN looks at, and with it how long it holds up
	// its loop; a key that is costly to match counts as several. COUNT is a hint in
	// Redis as well: the client goes on with the cursor.
	maxScanCount = 10_000
)

// scanQuery is what a SCAN asks for.
type scanQuery struct {
	cursor  member.Cursor
	count   int
	pattern []byte // nil: every key. A view of the command's arguments
	typ     engine.Type
	byType  bool
}

// parseScan reads a SCAN's arguments behind its name. errText is "" if they are
// right.
func parseScan(args [][]byte) (q scanQuery, errText string) {
	q.count = defaultScanCount
	cursor, ok := member.ParseCursor(args[0])
	if !ok {
		return q, errInvalidCursor
	}
	q.cursor = cursor
	for i := 1; i < len(args); i += 2 {
		if i+1 == len(args) {
			return q, errSyntax
		}
		value := args[i+1]
		switch {
		case is(args[i], "COUNT"):
			n, ok := resp.ParseInt(value)
			if !ok {
				return q, errNotInteger
			}
			if n < 1 {
				return q, errSyntax
			}
			q.count = int(min(n, maxScanCount))
		case is(args[i], "MATCH"):
			q.pattern = value
			if string(value) == "*" {
				q.pattern = nil // matches everything: not worth trying
			}
		case is(args[i], "TYPE"):
			q.byType, q.typ = true, typeByName(value)
		default:
			return q, errSyntax
		}
	}
	return q, ""
}

// typeByName returns the type that TYPE calls so; TypeNone, which no key has, for
// a name unknown: Redis then finds nothing, and so does this.
func typeByName(name []byte) engine.Type {
	for t, s := range typeNames {
		if t != engine.TypeNone && strings.EqualFold(string(name), s) {
			return t
		}
	}
	return engine.TypeNone
}

func (q *scanQuery) matches(item engine.Item) bool {
	if q.byType && item.Type() != q.typ {
		return false
	}
	return q.pattern == nil || matchGlob(q.pattern, item.Key())
}

// scanKeys appends the keys that the query finds to dst, as bulks, and returns
// how many, and the cursor at which to go on; done if there is nothing left.
// Partitions that are not wanted are skipped.
func (r *request) scanKeys(q *scanQuery, wanted *ring.PartitionSet, dst []byte) (body []byte, found int, next member.Cursor, done bool) {
	left := q.count
	collect := func(item engine.Item) bool {
		left -= globCost(q.pattern, item.Key())
		if q.matches(item) {
			dst = resp.AppendBulk(dst, item.Key())
			found++
		}
		return len(dst) < maxScanBytes && left > 0
	}
	position := q.cursor.Position()
	for p := q.cursor.Partition(); p < ring.Partitions; p++ {
		if wanted.Has(uint16(p)) {
			var whole bool
			position, whole = r.node.engine.Walk(uint16(p), position, left, r.now, collect)
			if !whole {
				return dst, found, member.CursorAt(p, position), false
			}
		}
		position = 0
		if left <= 0 {
			return r.afterPartition(p, wanted, dst, found)
		}
	}
	return dst, found, 0, true
}

// afterPartition ends a scan behind partition p: at the next one wanted, if any.
func (r *request) afterPartition(p int, wanted *ring.PartitionSet, dst []byte, found int) ([]byte, int, member.Cursor, bool) {
	for p++; p < ring.Partitions; p++ {
		if wanted.Has(uint16(p)) {
			return dst, found, member.CursorAt(p, 0), false
		}
	}
	return dst, found, 0, true
}

// maxScanBytes is how many bytes of keys end a SCAN before its COUNT does.
const maxScanBytes = maxBodyKept / 2

// replyKeys answers an array of keys, encoded in the worker's scratch space.
func (r *request) replyKeys(found int, body []byte) {
	if r.room(len(body) + lineRoom) {
		r.out = append(resp.AppendArray(r.out, found), body...)
	}
	r.worker.keepBody(body)
}

// scan: SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
func scan(r *request) {
	q, errText := parseScan(r.args[1:])
	if errText != "" {
		r.fail(errText)
		return
	}
	wanted := served(r.view, &allPartitions)
	body, found, next, _ := r.scanKeys(&q, &wanted, r.worker.body[:0])
	r.out = resp.AppendArray(r.out, 2)
	r.out = resp.AppendBulk(r.out, next.Append(r.worker.number[:0]))
	r.replyKeys(found, body)
}
