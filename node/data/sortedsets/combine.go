package sortedsets

import (
	"cmp"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// zUnion: ZUNION numkeys key... [WEIGHTS weight...] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
func zUnion(r *exec.Request) { combine(r, combining{op: union}, 1) }

// zInter: ZINTER numkeys key... [WEIGHTS weight...] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
func zInter(r *exec.Request) { combine(r, combining{op: inter}, 1) }

// zDiff: ZDIFF numkeys key... [WITHSCORES]
func zDiff(r *exec.Request) { combine(r, combining{op: diff}, 1) }

// zInterCard: ZINTERCARD numkeys key... [LIMIT limit]
func zInterCard(r *exec.Request) { combine(r, combining{op: inter, counts: true}, 1) }

// zUnionStore: ZUNIONSTORE destination numkeys key... [WEIGHTS weight...] [AGGREGATE SUM|MIN|MAX]
func zUnionStore(r *exec.Request) { combine(r, combining{op: union, store: r.Args[1]}, 2) }

// zInterStore: ZINTERSTORE destination numkeys key... [WEIGHTS weight...] [AGGREGATE SUM|MIN|MAX]
func zInterStore(r *exec.Request) { combine(r, combining{op: inter, store: r.Args[1]}, 2) }

// zDiffStore: ZDIFFSTORE destination numkeys key...
func zDiffStore(r *exec.Request) { combine(r, combining{op: diff, store: r.Args[1]}, 2) }

// combination is a command on several sets between its runs: sorted ones, or plain ones. It reads
// one set after the other: the first one gives members, a further one adds some, or removes those
// that it does not have, or has. So each run looks at one set.
//
//	look ─> gather ─> order ─> deliver
type combination struct {
	combining
	problem  string // of the options; the types of the keys come first
	looked   int    // so many keys
	sources  []input
	source   int  // that is read
	place    int  // in the source, or in the list
	kept     int  // entries of the list that the source has left
	gone     bool // a source was removed between two runs
	result   Result
	delivery *delivery
}

// input is one key of the command.
type input struct {
	i      int // among the keys
	length int
}

// stepsAtOnce is how many members are looked at under one lock: about 0.05 ms.
const stepsAtOnce = 64

// combine executes a command in runs. Between them it holds the partition.
func combine(r *exec.Request, c combining, at int) {
	rest, problem := c.parseKeys(r.Cmd.Name, r.Args[at:])
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
	x, _ := locks.State.(*combination)
	if x == nil {
		problem = c.parseOptions(rest)
		x = &combination{combining: c, problem: problem, result: Result{heap: r.Heap}}
		if c.op == union {
			x.result.index = make(map[string]int)
		}
		locks.State = x
	}
	x.combining.rebind(&c, rest) // arguments may have moved
	switch x.run(r, t) {
	case goesOn:
		locks.Hold()
		locks.Stop(locks.First+1, 0)
	case answered:
		x.End()
		locks.Whole()
	case failed:
		x.End()
	}
}

// rebind takes the views of the arguments of the present run.
func (c *combining) rebind(now *combining, options [][]byte) {
	c.keys, c.store = now.keys, now.store
	if c.weights != nil {
		c.weights = options[c.weightsAt : c.weightsAt+len(c.keys)]
	}
}

// End frees what the command has gathered.
func (x *combination) End() {
	x.result.End()
	x.delivery.End()
}

// OnlyGathers is the method of exec.Gatherer: a value that is stored is built aside.
func (*combination) OnlyGathers() {}

// progress is what one run has come to.
type progress int8

const (
	goesOn progress = iota
	answered
	failed
)

// run does some steps.
func (x *combination) run(r *exec.Request, t engine.Txn) progress {
	steps := stepsAtOnce
	for steps > 0 {
		switch {
		case x.looked < len(x.keys):
			if !x.look(r, t) {
				return failed
			}
			steps--
		case x.problem != "":
			r.Fail(x.problem)
			return failed
		case x.source < len(x.sources):
			x.read(t, &steps)
			switch {
			case x.gone:
				r.Fail(exec.ErrGone)
				return failed
			case x.result.lost:
				r.FailUnbuilt()
				return failed
			}
		default:
			return x.finish(r, t, steps)
		}
	}
	return goesOn
}

// look looks one key up. It answers an error and returns false if the key has another type. Behind
// the last one, sets are put in the order in which they are read: the shortest first, but of a
// difference.
func (x *combination) look(r *exec.Request, t engine.Txn) bool {
	item, found := r.Find(t, x.keys[x.looked])
	if found && !isSource(item) {
		r.Fail(exec.ErrWrongType)
		return false
	}
	r.Lookup(found, x.keys[x.looked])
	in := input{i: x.looked}
	if found {
		s := sourceOf(t, item)
		in.length = s.Len()
	}
	x.sources = append(x.sources, in)
	x.looked++
	if x.looked == len(x.keys) && x.op != diff {
		slices.SortStableFunc(x.sources, func(a, b input) int { return cmp.Compare(a.length, b.length) })
	}
	return true
}

// read reads some of the present source.
func (x *combination) read(t engine.Txn, steps *int) {
	in := x.sources[x.source]
	var s source
	if item, found := t.Peek(x.keys[in.i]); found {
		s = sourceOf(t, item)
	}
	if x.gone = s.Len() != in.length; x.gone {
		return
	}
	if x.op == union || x.source == 0 {
		x.gather(&s, in.i, steps)
	} else {
		x.filter(&s, in.i, steps)
	}
	*steps--
}

// gather adds members of a source to the result.
func (x *combination) gather(s *source, i int, steps *int) {
	left, done := *steps, false
	x.place, done = s.each(x.place, func(item shape.Item, score float64) bool {
		var decimal shape.Decimal
		member := item.Text(&decimal)
		score = number(x.weighted(i, score))
		at, there := 0, false
		if x.result.index != nil {
			at, there = x.result.index[string(member)]
		}
		if there {
			old := x.result.list.at(at)
			old.Score = x.aggregate.of(old.Score, score)
		} else if !x.result.Add(member, score) {
			return false
		}
		left -= 1 + exec.LongSteps(len(member))
		return left > 0
	})
	if *steps = left; done {
		x.next(x.result.list.length)
	}
}

// filter leaves those members of the result that a source has, or does not have.
func (x *combination) filter(s *source, i int, steps *int) {
	list := &x.result.list
	for ; *steps > 0 && x.place < list.length; *steps-- {
		entry := *list.at(x.place)
		x.place++
		member := x.result.Member(entry)
		*steps -= exec.LongSteps(len(member))
		score, has := s.Score(member)
		if has == (x.op == diff) {
			continue
		}
		if has {
			entry.Score = x.aggregate.of(entry.Score, x.weighted(i, score))
		}
		*list.at(x.kept) = entry
		x.kept++
	}
	if x.place == list.length {
		list.length = x.kept
		x.next(x.kept)
	}
}

// next goes on to the next source. Of an empty result nothing can be removed.
func (x *combination) next(length int) {
	x.source++
	x.place, x.kept = 0, 0
	if length == 0 && x.op != union {
		x.source = len(x.sources)
	}
}

// finish answers with the result, or stores it.
func (x *combination) finish(r *exec.Request, t engine.Txn, steps int) progress {
	if x.counts {
		n := int64(x.result.list.length)
		if x.limit > 0 {
			n = min(n, x.limit)
		}
		r.ReplyInt(n)
		return answered
	}
	if !x.result.Order(steps) {
		return goesOn
	}
	if x.delivery == nil {
		x.delivery = &delivery{withScores: x.withScores, total: x.result.list.length}
		if x.store == nil {
			r.Out = appendHead(r.Out, r.Version(), x.delivery.total, x.withScores)
		}
	}
	if x.store == nil {
		return x.delivery.reply(r, &x.result, steps)
	}
	return x.delivery.store(r, t, x.store, &x.result, steps)
}

// delivery is how far a result has been answered or stored.
type delivery struct {
	withScores bool
	total      int

	// Of a result that is stored and is not small:
	value    *exec.Builder
	elements []rdb.Element // room for those of one step
	last     []byte        // the member that was added last
	engine   *engine.Engine
	section  uint16
	now      int64
}

// reply answers some members.
func (d *delivery) reply(r *exec.Request, x *Result, steps int) progress {
	paired := d.withScores && r.Version() == resp.RESP3
	for ; steps > 0 && x.list.length > 0; steps-- {
		s := x.First()
		member := x.Member(s)
		steps -= exec.LongSteps(len(member))
		if !r.Room(len(member) + 3*exec.LineRoom) {
			return failed
		}
		if paired {
			r.Out = resp.AppendArray(r.Out, 2)
		}
		r.Out = resp.AppendBulk(r.Out, member)
		if d.withScores {
			r.Out = resp.AppendDouble(r.Out, r.Version(), s.Score)
		}
	}
	if x.list.length > 0 {
		return goesOn
	}
	return answered
}
