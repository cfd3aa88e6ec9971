package streams

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// xRange: XRANGE key start end [COUNT count]
func xRange(r *exec.Request) { replyRange(r, r.Args[2], r.Args[3], false) }

// xRevRange: XREVRANGE key end start [COUNT count]
func xRevRange(r *exec.Request) { replyRange(r, r.Args[3], r.Args[2], true) }

func replyRange(r *exec.Request, start, end []byte, back bool) {
	q, problem := parseRange(start, end, r.Args[4:], back)
	if problem != "" {
		r.Fail(problem)
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
	case !s.found:
		r.Out = resp.AppendArray(r.Out, 0)
	case q.count == 0:
		r.Out = resp.AppendNullArray(r.Out, r.Version())
	default:
		s.reply(&rangeReply{rangeQuery: q})
	}
}

// rangeQuery is what XRANGE or XREVRANGE asks for.
type rangeQuery struct {
	from, to ID // from is where it begins: the greater one if it goes back
	back     bool
	count    int
}

func parseRange(start, end []byte, options [][]byte, back bool) (q rangeQuery, problem string) {
	q = rangeQuery{back: back, count: math.MaxInt}
	if q.from, problem = parseStart(start); problem != "" {
		return q, problem
	}
	if q.to, problem = parseEnd(end); problem != "" {
		return q, problem
	}
	for ; len(options) > 0; options = options[2:] {
		if len(options) < 2 || !exec.Is(options[0], "COUNT") {
			return q, exec.ErrSyntax
		}
		n, problem := parseCount(options[1])
		if problem != "" {
			return q, problem
		}
		q.count = int(min(max(n, 0), math.MaxInt))
	}
	if back {
		q.from, q.to = q.to, q.from
	}
	return q, ""
}

// rangeReply is the reply with the entries of a range.
type rangeReply struct {
	rangeQuery
	place ID   // where it goes on
	at    spot // in that entry
	n     int  // entries so far
}

func (a *rangeReply) rewind() { a.place, a.at, a.n = a.from, spot{}, 0 }

func (a *rangeReply) next(v *view, w *slice) (done bool) {
	done = true
	visit := func(id ID, e entry) bool {
		switch {
		case a.n == a.count || !a.back && a.to.less(id) || a.back && id.less(a.to):
			return false
		case w.full() || !w.entry(id, &e, &a.at):
			a.place, done = id, false
			return false
		}
		a.n++
		return true
	}
	if a.back {
		v.eachBack(a.place, visit)
	} else {
		v.each(a.place, visit)
	}
	return done
}

func (a *rangeReply) appendHead(dst []byte) []byte { return resp.AppendArray(dst, a.n) }
