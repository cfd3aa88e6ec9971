package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// storing is a ZRANGESTORE between its runs.
type storing struct {
	result   Result
	span     Span
	found    bool // span is that of the query
	delivery *delivery
}

// End frees what was gathered.
func (x *storing) End() {
	x.result.End()
	x.delivery.End()
}

// OnlyGathers is the method of exec.Gatherer: the value is built aside.
func (*storing) OnlyGathers() {}

// zRangeStore: ZRANGESTORE destination source min max [BYSCORE|BYLEX] [REV] [LIMIT offset count]
func zRangeStore(r *exec.Request) {
	q, problem := parseRange(r.Args, 3, query{}, true)
	if problem != "" {
		r.Fail(problem)
		return
	}
	locks := r.LockElements()
	defer locks.Release()
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	x, _ := locks.State.(*storing)
	if x == nil {
		x = &storing{result: Result{heap: r.Heap}}
		locks.State = x
	}
	outcome := goesOn
	switch {
	case x.delivery != nil:
	case !x.found:
		s, ok := Read(r, t, r.Args[2])
		if !ok {
			x.End()
			return
		}
		x.span, x.found = q.of(&s), true
		fallthrough
	default:
		s := Peek(t, r.Args[2])
		if s.Len() < x.span.to {
			r.Fail(exec.ErrGone)
			x.End()
			return
		}
		x.gather(&s)
		if x.span.len() == 0 {
			x.delivery = &delivery{total: x.result.list.length}
		}
	}
	steps := stepsAtOnce
	switch {
	case x.result.lost:
		r.FailUnbuilt()
		outcome = failed
	case x.delivery != nil && x.result.Order(steps):
		outcome = x.delivery.store(r, t, r.Args[1], &x.result, steps)
	}
	switch outcome {
	case goesOn:
		locks.Hold()
		locks.Stop(locks.First+1, 0)
	case answered:
		x.End()
		locks.Whole()
	default:
		x.End()
	}
}

// gather copies some members of the span.
func (x *storing) gather(s *View) {
	left := stepsAtOnce
	s.Each(Span{from: x.span.from, to: x.span.to}, func(item shape.Item, score float64) bool {
		var decimal shape.Decimal
		x.result.Add(item.Text(&decimal), score)
		x.span.from++
		left -= 1 + exec.LongSteps(item.Size())
		return left > 0
	})
}
