package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// zAdd: ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member...
func zAdd(r *exec.Request) {
	o, problem := parseAdd(r.Args)
	if problem != "" {
		r.Fail(problem)
		return
	}
	add(r, o, r.Args[o.first:])
}

// zIncrBy: ZINCRBY key increment member
func zIncrBy(r *exec.Request) {
	o, problem := parseAdd(r.Args) // which finds no options, or as in Redis no pair behind one
	if problem != "" {
		r.Fail(problem)
		return
	}
	o.AddsTo = true
	add(r, o, r.Args[2:])
}

// add executes a ZADD of pairs of scores and members.
func add(r *exec.Request, o Options, pairs [][]byte) {
	Add(r, o, pairs, 2, func(pair [][]byte) (score float64, member []byte, problem string) {
		score, ok := ParseScore(pair[0])
		if !ok {
			return 0, nil, errNotFloat
		}
		return score, pair[1], ""
	})
}

// Reader reads an element among the arguments: a member and its score, or what is wrong with it.
type Reader = func(element [][]byte) (score float64, member []byte, problem string)

// changedAtOnce is how many members are added or removed by name under one lock: about 0.1 ms in a
// million.
const changedAtOnce = 64

// Add adds elements to the sorted set under the command's key, each of which is so many of args,
// and answers the command. Nothing is added if one of them is wrong: a command with many looks at
// all of them in runs before it adds the first one.
func Add(r *exec.Request, o Options, args [][]byte, each int, read Reader) {
	n, passes := len(args)/each, 1
	if n > changedAtOnce {
		passes = 2
	}
	run, ok := r.LockElementRuns(args, each, passes, changedAtOnce)
	if !ok {
		return
	}
	defer run.Release()
	first, count := run.First%n, run.End-run.First
	a := addition{o: o, args: args[first*each : (first+count)*each], each: each, read: read}
	if !run.FitsOver(args) {
		return
	}
	if run.First < n {
		if problem := a.check(); problem != "" {
			r.Fail(problem)
			return
		}
		if passes > 1 {
			run.GoesOn(0)
			return
		}
	}
	s, ok := open(r, run.Txn, r.Args[1])
	if !ok {
		return
	}
	if err := s.add(&a); err != nil {
		r.ReplyValueError(err)
		return
	}
	if a.written {
		run.State = written{}
	}
	wrote := run.State != nil
	switch sum := run.Sum + a.counted; {
	case a.last.nan:
		r.Fail(errNaN)
		return
	case run.GoesOn(sum):
		return
	case !o.AddsTo:
		r.ReplyInt(sum)
	case a.last.none:
		r.ReplyNull()
	default:
		r.Out = resp.AppendDouble(r.Out, r.Version(), a.last.score)
	}
	switch {
	case !wrote:
	case o.AddsTo:
		r.Notify(keyevent.SortedSet, "zincr", s.key)
	default:
		r.Notify(keyevent.SortedSet, "zadd", s.key)
	}
}

// written is the state of a command that has written something in an earlier run.
type written struct{}

// addition is one run of ZADD.
type addition struct {
	o    Options
	args [][]byte
	each int
	read Reader

	score  float64 // of the only element, which has been read
	member []byte

	counted int64 // members that the reply counts
	written bool  // a score
	last    outcome
}

// check looks whether all elements can be read, and returns what is wrong.
func (a *addition) check() (problem string) {
	for i := 0; i < len(a.args) && problem == ""; i += a.each {
		a.score, a.member, problem = a.read(a.args[i : i+a.each])
	}
	return problem
}

// at is the element whose arguments begin at i.
func (a *addition) at(i int) (score float64, member []byte) {
	if len(a.args) == a.each && a.member != nil {
		return a.score, a.member
	}
	score, member, _ = a.read(a.args[i : i+a.each])
	return score, member
}

// of decides about one element.
func (a *addition) of(old float64, there bool, score float64) outcome {
	a.last = a.o.apply(old, there, score)
	a.written = a.written || a.last.write
	if a.last.added || a.o.CountChanged && a.last.write {
		a.counted++
	}
	return a.last
}

// add adds elements. After an error, or if a sum is not a number, nothing has changed.
func (s *sorted) add(a *addition) error {
	if s.isBig {
		return s.addBig(a)
	}
	p, changed := s.edit(), false
	for i := 0; i < len(a.args); i += a.each {
		score, member := a.at(i)
		keys, at := [1][]byte{member}, [1]int{}
		p.Find(keys[:], at[:])
		old, there := 0.0, at[0] >= 0
		if there {
			old = scoreOf(p.Rank(at[0]))
		}
		x := a.of(old, there, score)
		if !x.write {
			continue
		}
		if !putPacked(p, member, old, there, x.score) {
			a.counted = 0
			return s.grow(func() error { return s.addBig(a) })
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return s.store(p)
}

// addBig is add of a set with parts.
func (s *sorted) addBig(a *addition) error {
	w, b := &s.r.Worker.Work, &s.big
	if len(a.args) == a.each {
		score, member := a.at(0)
		at, there := b.tree.Lookup(member)
		x := a.of(scoreOf(at.Rank), there, score)
		if !x.write {
			return nil
		}
		if err := b.set(member, at, there, x.score); err != nil {
			return err
		}
		b.note(w, member, x.score)
		w.Note(b.v)
		b.tree.Verify()
		return nil
	}
	var room [changedAtOnce]step
	all := steps(room[:0])
	for i := 0; i < len(a.args); i += a.each {
		score, member := a.at(i)
		old, there := b.scoreIn(all, member)
		x := a.of(old, there, score)
		if !x.write {
			continue
		}
		b.tree.Moves = there
		inserted, err := b.tree.Insert(rankOf(x.score), member, nil)
		if err != nil {
			b.undo(all)
			return err
		}
		all = append(all, step{member, endingOf(member), old, x.score, there, inserted})
	}
	if len(all) > 0 {
		b.finish(w, all)
		w.Note(b.v)
	}
	b.tree.Verify()
	return nil
}
