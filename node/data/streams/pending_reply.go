package streams

import (
	"bytes"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// xPending: XPENDING key group [[IDLE ms] start end count [consumer]]
func xPending(r *exec.Request) {
	q, problem := parsePending(r.Args)
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
	if !ok {
		return
	}
	var g group
	if ok = s.found; ok {
		g, ok = s.group(r.Args[2])
	}
	switch {
	case !ok:
		r.Fail(noGroup(r.Args[1], r.Args[2]))
	case len(r.Args) == 3:
		s.replyPendingSummary(&g)
	default:
		s.replyPendingList(&g, q)
	}
}

// pendingQuery is what XPENDING asks for.
type pendingQuery struct {
	minIdle  int64
	from, to ID
	count    int64
	consumer []byte // nil: any
}

func parsePending(args [][]byte) (q pendingQuery, problem string) {
	if len(args) == 3 {
		return q, ""
	}
	if len(args) < 6 || len(args) > 9 {
		return q, exec.ErrSyntax
	}
	rest := args[3:]
	if exec.Is(rest[0], "IDLE") {
		if q.minIdle, problem = parseCount(rest[1]); problem != "" {
			return q, problem
		}
		if len(args) < 8 {
			return q, exec.ErrSyntax
		}
		rest = rest[2:]
	}
	if q.count, problem = parseCount(rest[2]); problem != "" {
		return q, problem
	}
	if q.from, problem = parseStart(rest[0]); problem != "" {
		return q, problem
	}
	if q.to, problem = parseEnd(rest[1]); problem != "" {
		return q, problem
	}
	if len(rest) > 3 {
		q.consumer = rest[3]
	}
	return q, ""
}

// replyPendingSummary answers how many entries are pending, which are the first and the last one, and how
// many each consumer has.
func (s *stream) replyPendingSummary(g *group) {
	r := s.r
	first, last, any := s.pendingEnds(g)
	if !any {
		version := r.Version()
		r.Out = resp.AppendInt(resp.AppendArray(r.Out, 4), 0)
		r.Out = resp.AppendNull(resp.AppendNull(r.Out, version), version)
		r.Out = resp.AppendNullArray(r.Out, version)
		return
	}
	head := resp.AppendInt(resp.AppendArray(nil, 4), int64(g.pending))
	head = appendBulkID(appendBulkID(head, first), last)
	name := append([]byte(nil), g.name...)
	s.reply(&pendingSummary{group: name, front: head})
}

// pendingSummary is the reply with the consumers of a group that have pending entries.
type pendingSummary struct {
	group []byte
	front []byte
	after []byte // the consumer where it goes on
	n     int
}

func (a *pendingSummary) rewind() { a.after, a.n = nil, 0 }

func (a *pendingSummary) next(v *view, w *slice) (done bool) {
	g, found := v.group(a.group)
	if !found {
		return true
	}
	done = true
	v.eachConsumer(&g, a.after, func(c *consumer) bool {
		if w.full() {
			done = false
			return false
		}
		w.steps -= groupSteps
		a.after = behindName(a.after, c.name)
		if c.pending > 0 {
			a.n++
			w.array(2)
			w.bulk(c.name)
			var number [20]byte
			w.bulk(strconv.AppendInt(number[:0], int64(c.pending), 10))
		}
		return true
	})
	return done
}

func (a *pendingSummary) appendHead(dst []byte) []byte {
	return resp.AppendArray(append(dst, a.front...), a.n)
}

// replyPendingList answers pending entries.
func (s *stream) replyPendingList(g *group, q pendingQuery) {
	r := s.r
	if q.consumer != nil {
		if _, found := s.consumer(g, q.consumer); !found {
			r.Out = resp.AppendArray(r.Out, 0)
			return
		}
		q.consumer = bytes.Clone(q.consumer) // which is not nil, even if it is empty
	}
	if q.minIdle > 0 && g.oldest > r.Now-q.minIdle {
		r.Out = resp.AppendArray(r.Out, 0)
		return
	}
	s.reply(&pendingList{pendingQuery: q, group: append([]byte(nil), g.name...), now: r.Now})
}

// pendingList is the reply with pending entries.
type pendingList struct {
	pendingQuery
	group []byte
	now   int64
	place ID // where it goes on
	n     int
}

func (a *pendingList) rewind() { a.place, a.n = a.from, 0 }

func (a *pendingList) next(v *view, w *slice) (done bool) {
	g, found := v.group(a.group)
	var of *consumer
	if found && a.consumer != nil {
		var c consumer
		c, found = v.consumer(&g, a.consumer)
		of = &c
	}
	if !found {
		return true
	}
	done = true
	names := namer{v: v, g: &g}
	v.eachPending(&g, of, a.place, func(p pending) bool {
		switch {
		case int64(a.n) >= a.count || a.to.less(p.id):
			return false
		case w.full():
			a.place, done = p.id, false
			return false
		}
		w.steps -= pendingSteps
		idle := a.now - p.delivered
		if a.minIdle != 0 && idle < a.minIdle {
			return true
		}
		a.n++
		w.array(4)
		w.id(p.id)
		w.bulk(names.of(p.consumer))
		w.int(max(idle, 0))
		w.int(int64(p.count))
		return true
	})
	return done
}

func (a *pendingList) appendHead(dst []byte) []byte { return resp.AppendArray(dst, a.n) }

// namer finds the names of consumers: it remembers the last one.
type namer struct {
	v      *view
	g      *group
	number uint32
	name   []byte
}

func (n *namer) of(number uint32) []byte {
	if n.name == nil || n.number != number {
		n.number, n.name = number, n.v.consumerName(n.g, number)
	}
	return n.name
}
