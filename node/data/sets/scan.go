package sets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sScan: SSCAN key cursor [MATCH pattern] [COUNT count]. A packed set is answered whole, as Redis
// does.
func sScan(r *exec.Request) {
	cursor, ok := r.ScanCursor()
	if !ok {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := read(r, t, r.Args[1])
	switch {
	case !ok:
		return
	case !s.found:
		r.ReplyScan(0, 0, nil)
		return
	}
	q, ok := r.ScanOptions(false)
	if !ok {
		return
	}
	out, n := r.Worker.Body[:0], 0
	visit := func(member shape.Item) {
		var number shape.Decimal
		if q.Matches(member.Text(&number)) {
			out = appendMember(out, member)
			n++
		}
	}
	next := uint64(0)
	if s.big {
		full := func(passed int) bool { return q.IsFull(passed, len(out)) }
		weight := func(e shape.Element) int { return q.Weight(e.Key, e.Key.Size()) }
		next = s.table.Scan(cursor, full, weight, func(e shape.Element) { visit(e.Key) })
	} else {
		s.each(visit)
	}
	r.ReplyScan(next, n, out)
	r.Worker.KeepBody(out)
}
