package hashes

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hScan: HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]. A packed hash is answered whole,
// as Redis does.
func hScan(r *exec.Request) {
	cursor, ok := r.ScanCursor()
	if !ok {
		return
	}
	withHash(r, func(h hash) {
		if !h.found {
			r.ReplyScan(0, 0, nil)
			return
		}
		q, ok := r.ScanOptions(true)
		if !ok {
			return
		}
		body := r.NewText(r.Worker.Body)
		found, next := h.scan(&q, cursor, &body)
		r.ReplyScanText(next, found, &body)
		r.Worker.KeepBody(body.Bytes)
	})
}

// scan appends the fields from a cursor on, and returns how many strings there are, and the next
// cursor.
func (h *hash) scan(q *exec.ElementScan, cursor uint64, body *exec.Text) (found int, next uint64) {
	w := fields | values
	if q.NoValues {
		w = fields
	}
	visit := func(field, value shape.Item) {
		var number shape.Decimal
		if q.Matches(field.Text(&number)) {
			w.appendTo(body, field, value)
			found++
		}
	}
	if h.big {
		full := func(passed int) bool { return q.IsFull(passed, body.Len()) }
		weight := func(e shape.Element) int { return q.Weight(e.Key, w.weight(e)) }
		next = h.table.Scan(cursor, full, weight, func(e shape.Element) { visit(e.Key, e.Value) })
	} else {
		h.packed.Each(0, func(_ int, field, value shape.Item, _ int64) bool {
			visit(field, value)
			return true
		})
	}
	if !q.NoValues {
		found *= 2
	}
	return found, next
}

// weight is how many bytes appendTo copies of an element.
func (w what) weight(e shape.Element) (n int) {
	if w&fields != 0 {
		n = exec.TextWeight(e.Key)
	}
	if w&values != 0 {
		n += exec.TextWeight(e.Value)
	}
	return n
}
