package keys

import (
	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	defaultScanCount = 10
	// maxScanCount bounds how many keys one SCAN visits, and so how long it holds its loop, and its
	// proxy's, which puts the keys of all nodes together. A key that is costly to match counts as
	// several. As in Redis, COUNT is a hint: the client continues with the cursor.
	maxScanCount = 1024
)

// scanQuery is what a SCAN asks for.
type scanQuery struct {
	cursor  member.Cursor
	count   int
	pattern *glob.Pattern // nil: every key. It has a view of the command's arguments
	byType  bool
	typ     *exec.Type // with byType; nil, which no key has, for an unknown name: as in Redis, nothing is found
	bySlot  bool       // SLOT is an option
	slot    int        // of the keys; noSlot: any
	slotOf  func(key []byte) uint16
}

const noSlot = -1

// parse reads the options of SCAN or CLUSTERSCAN. errText is "" if they are right.
func (q *scanQuery) parse(types *exec.Types, options [][]byte) (errText string) {
	var pattern []byte
	for i := 0; i < len(options); i += 2 {
		if i+1 == len(options) {
			return exec.ErrSyntax
		}
		value := options[i+1]
		switch {
		case exec.Is(options[i], "COUNT"):
			n, ok := resp.ParseInt(value)
			if !ok {
				return exec.ErrNotInteger
			}
			if n < 1 {
				return exec.ErrSyntax
			}
			q.count = int(min(n, maxScanCount))
		case exec.Is(options[i], "MATCH"):
			pattern = value
		case exec.Is(options[i], "TYPE"):
			q.byType, q.typ = true, types.ByName(value)
		case q.bySlot && exec.Is(options[i], "SLOT"):
			slot, ok := resp.ParseInt(value)
			if !ok || slot < 0 || slot >= ring.Slots {
				return cluster.ErrSlotRange
			}
			q.slot = int(slot)
		default:
			return exec.ErrSyntax
		}
	}
	if pattern == nil || string(pattern) == "*" { // these match every key
		return ""
	}
	var err error
	if q.pattern, err = glob.Compile(pattern); err != nil {
		return err.Error()
	}
	return ""
}

func (q *scanQuery) matches(item engine.Item) bool {
	if q.byType && (q.typ == nil || item.Type() != q.typ.ID) {
		return false
	}
	if q.slot != noSlot && int(q.slotOf(item.Key())) != q.slot {
		return false
	}
	return q.pattern == nil || q.pattern.Match(item.Key())
}

// scanKeys appends the keys that match the query to dst, as bulk strings. It returns how many there
// are, the cursor at which to continue, and whether nothing is left. It skips partitions that are
// not wanted, and stops before one that is held. Nodes of a cluster below ring.HoldLevel do not
// understand a stop at the beginning of partition 0: there the scan goes on.
func scanKeys(r *exec.Request, q *scanQuery, wanted *ring.PartitionSet, dst []byte) (body []byte, found int, next member.Cursor) {
	left := q.count
	collect := func(item engine.Item) bool {
		left -= q.pattern.Cost(item.Key())
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
			if p == 0 && position == 0 && r.Level() < ring.HoldLevel {
				position, whole = r.Engine.Walk(engine.Section(0, r.Database), position, left, r.Now, collect)
			} else {
				position, whole, _ = r.Engine.WalkUnheld(engine.Section(uint16(p), r.Database), position, left, r.Now, collect)
			}
			if !whole {
				return dst, found, member.StopAt(p, position)
			}
		}
		position = 0
		if left <= 0 {
			return afterPartition(r, p, wanted, dst, found)
		}
	}
	return dst, found, member.EndOfScan
}

// afterPartition ends a scan behind partition p, at the next wanted one if there is any.
func afterPartition(r *exec.Request, p int, wanted *ring.PartitionSet, dst []byte, found int) ([]byte, int, member.Cursor) {
	for p++; p < ring.Partitions; p++ {
		if wanted.Has(uint16(p)) {
			return dst, found, member.CursorAt(p, 0)
		}
	}
	return dst, found, member.EndOfScan
}

// maxScanBytes is how many bytes of keys end a SCAN before its COUNT does.
const maxScanBytes = exec.MaxBodyKept / 2

// replyKeys answers an array of keys, which are encoded in the worker's scratch buffer.
func replyKeys(r *exec.Request, found int, body []byte) {
	if r.Room(len(body) + exec.LineRoom) {
		r.Out = append(resp.AppendArray(r.Out, found), body...)
	}
	r.Worker.KeepBody(body)
}

// scan: SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
func scan(r *exec.Request) {
	cursor, ok := member.ParseCursor(r.Args[1])
	if !ok {
		r.Fail(errInvalidCursor)
		return
	}
	q := scanQuery{cursor: cursor, count: defaultScanCount, slot: noSlot, slotOf: r.SlotOf}
	if errText := q.parse(r.Types, r.Args[2:]); errText != "" {
		r.Fail(errText)
		return
	}
	covered := r.Keyspace.Cover()
	body, found, next := scanKeys(r, &q, &covered, r.Worker.Body[:0])
	if r.Part {
		r.Out = member.AppendStop(r.Out, next)
	} else {
		if next == member.EndOfScan {
			next = 0
		}
		r.Out = resp.AppendArray(r.Out, 2)
		r.Out = resp.AppendBulk(r.Out, next.Append(r.Worker.Number[:0]))
	}
	replyKeys(r, found, body)
}
