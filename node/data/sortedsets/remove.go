package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// zRem: ZREM key member...
func zRem(r *exec.Request) {
	run, ok := r.LockElementRuns(r.Args[2:], 1, 1, changedAtOnce)
	if !ok {
		return
	}
	defer run.Release()
	s, ok := open(r, run.Txn, r.Args[1])
	if !ok {
		return
	}
	sum := run.Sum
	if s.found {
		n, err := s.remove(r.Args[2+run.First : 2+run.End])
		if err != nil {
			r.ReplyValueError(err)
			return
		}
		sum += int64(n)
	}
	if run.GoesOn(sum) {
		return
	}
	if sum > 0 {
		r.NotifyLeft(run.Txn, keyevent.SortedSet, "zrem", s.key)
	}
	r.ReplyInt(sum)
}

// remove removes members, and the key with the last of them.
func (s *sorted) remove(members [][]byte) (removed int, err error) {
	if s.isBig {
		w := &s.r.Worker.Work
		for _, member := range members {
			if s.big.remove(w, member) {
				removed++
			}
		}
		if removed > 0 {
			w.Note(s.big.v)
			s.shrink()
		}
		return removed, nil
	}
	p := s.edit()
	var at [1]int
	for i := range members {
		if p.Find(members[i:i+1], at[:]); at[0] >= 0 {
			p.Delete(at[0])
			removed++
		}
	}
	if removed == 0 {
		return 0, nil
	}
	return removed, s.store(p)
}

// zRemRangeByRank: ZREMRANGEBYRANK key start stop
func zRemRangeByRank(r *exec.Request) { removeRange(r, byPosition) }

// zRemRangeByScore: ZREMRANGEBYSCORE key min max
func zRemRangeByScore(r *exec.Request) { removeRange(r, byScore) }

// zRemRangeByLex: ZREMRANGEBYLEX key min max
func zRemRangeByLex(r *exec.Request) { removeRange(r, byName) }

// removedAtOnce is how many members are removed under one lock, or how many steps their removal takes:
// about 0.05 ms.
const removedAtOnce = 128

// removeRange removes the members of a range in runs. Between them the command holds the partition.
func removeRange(r *exec.Request, by by) {
	q, problem := parseRange(r.Args, 2, query{by: by}, false)
	if problem != "" {
		r.Fail(problem)
		return
	}
	locks := r.LockElements()
	defer locks.Release()
	t, key, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, locks.Sum)
		return
	}
	s, ok := open(r, t, key)
	if !ok {
		return
	}
	p := s.rest(&q, locks.Sum)
	n, err := s.removeSome(p.from, s.fewer(p.from, p.len()), removedAtOnce)
	if err != nil {
		r.ReplyValueError(err)
		return
	}
	more, sum := p.len() > n, locks.Sum+int64(n)
	if !more {
		if sum > 0 {
			r.NotifyLeft(t, keyevent.SortedSet, r.Cmd.Name, key)
		}
		r.ReplyInt(sum)
		return
	}
	locks.Hold()
	locks.Stop(locks.First+1, sum)
}

// rest is the span of a query of which earlier runs have removed so many members, the first ones.
func (s *sorted) rest(q *query, removed int64) (p Span) {
	if q.by != byPosition {
		return q.of(&s.View)
	}
	whole := View{length: s.length + int(removed)}
	p = q.of(&whole)
	p.to -= int(removed)
	return p
}

// fewer is how many of n members from a position on may be removed under one lock: not all if some are
// long, since followers are told their names. It does not bound sets in which no name is longer than 191
// bytes: there the steps of removeSome do.
func (s *sorted) fewer(from, n int) int {
	if !s.isBig || s.big.v.Count(away) == 0 {
		return n
	}
	count, bytes := 0, 0
	s.Each(Span{from: from, to: from + min(n, removedAtOnce)}, func(member shape.Item, _ float64) bool {
		count++
		bytes += member.Size()
		return bytes < exec.RunBytes
	})
	return count
}

// removeSome removes up to n members that stand behind one another, in so many steps (see
// shape.Tree.DeleteRange), and returns how many it has removed.
func (s *sorted) removeSome(from, n, steps int) (removed int, err error) {
	switch {
	case n == 0:
		return 0, nil
	case s.isBig:
		w := &s.r.Worker.Work
		removed = s.big.removeSome(w, from, n, steps)
		w.Note(s.big.v)
		s.shrink()
		return removed, nil
	}
	p := s.edit()
	for range n {
		p.Delete(from)
	}
	return n, s.store(p)
}
