package sortedsets

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// maxScanned bounds COUNT: so many members are visited under one lock.
const maxScanned = 1000

// zScan: ZSCAN key cursor [MATCH pattern] [COUNT count]
func zScan(r *exec.Request) {
	cursor, err := strconv.ParseUint(string(r.Args[2]), 10, 64)
	if err != nil {
		r.Fail(errCursor)
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
		r.Out = append(r.Out, "*2\r\n$1\r\n0\r\n*0\r\n"...)
		return
	}
	pattern, count := (*glob.Pattern)(nil), int64(10)
	for args := r.Args[3:]; len(args) > 0; args = args[2:] {
		switch {
		case len(args) > 1 && exec.Is(args[0], "COUNT"):
			if count, ok = resp.ParseInt(args[1]); !ok {
				r.Fail(exec.ErrNotInteger)
				return
			}
			if count < 1 {
				r.Fail(exec.ErrSyntax)
				return
			}
		case len(args) > 1 && exec.Is(args[0], "MATCH"):
			if pattern, err = glob.Compile(args[1]); err != nil {
				r.Fail("ERR " + err.Error())
				return
			}
		default:
			r.Fail(exec.ErrSyntax)
			return
		}
	}
	s.scan(r, cursor, int(min(count, maxScanned)), pattern)
}

// scan answers some members of a big set, or all of a small one.
func (s *View) scan(r *exec.Request, cursor uint64, count int, pattern *glob.Pattern) {
	text, n := r.Worker.Body[:0], 0
	add := func(member []byte, score float64, exact bool) {
		if pattern != nil && !pattern.Match(member) {
			return
		}
		var room [scoreText]byte
		number := room[:0]
		if exact {
			number = resp.AppendFloat(number, score)
		} else {
			number = appendLong(number, score)
		}
		text = resp.AppendBulk(resp.AppendBulk(text, member), number)
		n++
	}
	if s.isBig {
		cursor = s.big.table.Scan(cursor, count, func(e shape.Element) {
			var number shape.Decimal
			add(e.Key.Text(&number), readScore(e.Value), false)
		})
	} else {
		cursor = 0
		s.Each(Span{to: s.Len()}, func(member shape.Item, score float64) bool {
			var number shape.Decimal
			add(member.Text(&number), score, true)
			return true
		})
	}
	if r.Room(len(text) + 2*exec.LineRoom) {
		r.Out = resp.AppendArray(r.Out, 2)
		r.Out = resp.AppendBulk(r.Out, strconv.AppendUint(r.Worker.Number[:0], cursor, 10))
		r.Out = resp.AppendArray(r.Out, 2*n)
		r.Out = append(r.Out, text...)
	}
	r.Worker.KeepBody(text)
}

// scoreText is more than the longest text of a score.
const scoreText = 40
