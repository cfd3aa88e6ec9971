package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// scoreCost is what the text of a big set's score costs, in visits of an element.
const scoreCost = 3

// zScan: ZSCAN key cursor [MATCH pattern] [COUNT count]. A small set is answered whole, as Redis
// does.
func zScan(r *exec.Request) {
	cursor, ok := r.ScanCursor()
	if !ok {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := Read(r, t, r.Args[1])
	switch {
	case !ok:
		return
	case s.Len() == 0:
		r.ReplyScan(0, 0, nil)
		return
	}
	if q, ok := r.ScanOptions(false); ok {
		s.scan(r, &q, cursor)
	}
}

// scan answers some members of a big set, or all of a small one.
func (s *View) scan(r *exec.Request, q *exec.ElementScan, cursor uint64) {
	text, n, next := r.Worker.Body[:0], 0, uint64(0)
	add := func(member shape.Item, score float64) {
		var decimal shape.Decimal
		name := member.Text(&decimal)
		if s.isBig {
			q.Charge(scoreCost)
		}
		if !q.Matches(name) {
			return
		}
		var room [scoreText]byte
		number := room[:0]
		if s.isBig {
			number = appendLong(number, score)
		} else {
			number = resp.AppendFloat(number, score)
		}
		text = resp.AppendBulk(resp.AppendBulk(text, name), number)
		n++
	}
	if s.isBig {
		full := func(passed int) bool { return q.IsFull(passed, len(text)) }
		weight := func(x shape.Entry) int { return q.Weight(x.First, x.First.Size()) }
		next = s.big.tree.Scan(cursor, full, weight, func(x shape.Entry) { add(x.First, scoreOf(x.Rank)) })
	} else {
		s.Each(Span{to: s.Len()}, func(member shape.Item, score float64) bool {
			add(member, score)
			return true
		})
	}
	r.ReplyScan(next, 2*n, text)
	r.Worker.KeepBody(text)
}

// scoreText is more than the longest text of a score.
const scoreText = 40
