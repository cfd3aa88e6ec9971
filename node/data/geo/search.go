package geo

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/data/sortedsets"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// geoSearch: GEOSEARCH key FROMMEMBER member|FROMLONLAT longitude latitude BYRADIUS radius
// unit|BYBOX width height unit [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]
func geoSearch(r *exec.Request) { find(r, form{source: 1, options: 2, search: true}) }

// geoSearchStore: GEOSEARCHSTORE destination source, as GEOSEARCH, [STOREDIST]
func geoSearchStore(r *exec.Request) {
	find(r, form{source: 2, options: 3, search: true, store: true})
}

// geoRadius: GEORADIUS key longitude latitude radius unit, as GEOSEARCH, [STORE key|STOREDIST key]
func geoRadius(r *exec.Request) { find(r, form{source: 1, options: 6, stores: true}) }

// geoRadiusRO: GEORADIUS_RO, GEORADIUS that does not store
func geoRadiusRO(r *exec.Request) { find(r, form{source: 1, options: 6}) }

// geoRadiusByMember: GEORADIUSBYMEMBER key member radius unit, as GEORADIUS
func geoRadiusByMember(r *exec.Request) {
	find(r, form{source: 1, options: 5, byMember: true, stores: true})
}

// geoRadiusByMemberRO: GEORADIUSBYMEMBER_RO, GEORADIUSBYMEMBER that does not store
func geoRadiusByMemberRO(r *exec.Request) { find(r, form{source: 1, options: 5, byMember: true}) }

// finding is a search between its runs. Results wait in a heap until all are found, so that none of
// the runs is long.
//
//	visit cells ─> order ─> reply
//	                  └───> choose ─> store
type finding struct {
	search
	cells  [9]cell
	cell   int
	passed int // members of the present cell
	found  *sortedsets.Result
	chosen *sortedsets.Result // that are to be stored
	left   int                // results that are to be answered or chosen
	begun  bool               // to answer or choose
	stored sortedsets.Storing
}

// End frees what was found.
func (x *finding) End() {
	x.found.End()
	if x.chosen != nil {
		x.chosen.End()
	}
	x.stored.End()
}

// OnlyGathers is the method of exec.Gatherer: a value that is stored is built aside.
func (*finding) OnlyGathers() {}

// visitedAtOnce is how many members are looked at under one lock: about 0.05 ms. A member that is
// found counts for more: its distance is computed exactly.
const (
	visitedAtOnce = 96
	foundSteps    = 4
)

// find executes a search in runs. Between them it holds the partition.
func find(r *exec.Request, f form) {
	locks := r.LockElements()
	defer locks.Release()
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	x, _ := locks.State.(*finding)
	if x == nil {
		if x = begin(r, t, f); x == nil {
			return
		}
		locks.State = x
	}
	x.rebind(r.Args) // they may have moved
	done, ok := x.run(r, t)
	switch {
	case !done:
		locks.Hold()
		locks.Stop(locks.First+1, 0)
		return
	case ok:
		locks.Whole()
	}
	x.End()
}

// begin reads the arguments. It returns nil if the command is answered with that.
func begin(r *exec.Request, t engine.Txn, f form) *finding {
	set, ok := sortedsets.Read(r, t, r.Args[f.source])
	if !ok {
		return nil
	}
	x := &finding{search: search{form: f}}
	if problem := x.parse(r.Args, &set, set.Len() > 0); problem != "" {
		r.Fail(problem)
		return nil
	}
	x.rebind(r.Args)
	if set.Len() > 0 {
		x.cells = x.region.cells()
		x.found = sortedsets.NewFound(r.Heap)
		return x
	}
	if x.storeKey != nil {
		if t.Delete(x.storeKey) {
			r.Notify(keyevent.Generic, "del", x.storeKey)
		}
		r.ReplyInt(0)
	} else {
		r.Out = resp.AppendArray(r.Out, 0)
	}
	return nil
}

// rebind finds the key for the results among the arguments of the present run.
func (x *finding) rebind(args [][]byte) {
	if x.storeAt > 0 {
		x.storeKey = args[x.storeAt]
	}
}

// run does some steps. ok: the reply is no error.
func (x *finding) run(r *exec.Request, t engine.Txn) (done, ok bool) {
	for steps := visitedAtOnce; steps > 0; {
		switch {
		case x.cell < len(x.cells):
			if !x.visit(t, r.Args[x.source], &steps) {
				r.FailUnbuilt()
				return true, false
			}
		case !x.found.Order(steps):
			return false, true
		case x.storeKey == nil:
			return x.reply(r, steps), true
		case x.stored.Result == nil:
			if !x.choose(r, &steps) {
				r.FailUnbuilt()
				return true, false
			}
		default:
			return x.stored.Run(r, t, x.storeKey)
		}
	}
	return false, true
}

// visit looks at some members of the present cell. It returns false if there is no memory for what
// it finds.
func (x *finding) visit(t engine.Txn, key []byte, steps *int) bool {
	set := sortedsets.Peek(t, key)
	enough := x.any && int64(x.found.Len()) >= x.count
	span := set.FromScore(x.cells[x.cell].scores())
	left := span.Skip(x.passed)
	if (x.cells[x.cell] == cell{}) || enough || left == 0 {
		x.cell++
		x.passed = 0
		*steps--
		return true
	}
	set.Each(span, func(item shape.Item, score float64) bool {
		x.passed++
		*steps--
		if p := pointOf(score); x.has(p) {
			var decimal shape.Decimal
			x.found.AddFound(item.Text(&decimal), x.rank(p), score)
			*steps -= foundSteps + exec.LongSteps(item.Size())
			enough = x.any && int64(x.found.Len()) >= x.count
		}
		return *steps > 0 && !enough && !x.found.Lost()
	})
	return !x.found.Lost()
}

// rank is the number by which a result is ordered.
func (x *finding) rank(p point) float64 {
	switch x.direction {
	case nearest:
		return distance(x.center, p)
	case farthest:
		return -distance(x.center, p)
	}
	return 0
}

// results is how many results there are to be.
func (x *finding) results() int {
	n := x.found.Len()
	if x.count > 0 {
		n = int(min(int64(n), x.count))
	}
	return n
}

// distance is how far away a result is, in the units of the search.
func (x *finding) distance(s sortedsets.Scored) float64 {
	metres := math.Abs(s.Score)
	if x.direction == unordered {
		metres = distance(x.center, pointOf(s.Hash))
	}
	return metres / x.unit
}

// choose takes results that are to be stored. It returns false if there is no memory for them.
func (x *finding) choose(r *exec.Request, steps *int) bool {
	if !x.begun {
		x.begun, x.left, x.chosen = true, x.results(), sortedsets.NewResult(r.Heap)
	}
	for ; *steps > 0 && x.left > 0; *steps -= 1 + foundSteps {
		s := x.found.First()
		*steps -= exec.LongSteps(len(x.found.Member(s)))
		score := s.Hash
		if x.storeDistance {
			score = x.distance(s)
		}
		x.chosen.Add(x.found.Member(s), score)
		x.left--
	}
	if x.left == 0 {
		x.stored.Result = x.chosen
	}
	*steps--
	return !x.chosen.Lost()
}

// reply answers some results, and reports whether these were the last.
func (x *finding) reply(r *exec.Request, steps int) (done bool) {
	if !x.begun {
		x.begun, x.left = true, x.results()
		r.Out = resp.AppendArray(r.Out, x.left)
	}
	options := 0
	for _, with := range [3]bool{x.withDistance, x.withHash, x.withPoint} {
		if with {
			options++
		}
	}
	for ; steps > 0 && x.left > 0; steps -= 1 + foundSteps {
		s := x.found.First()
		x.left--
		member := x.found.Member(s)
		steps -= exec.LongSteps(len(member))
		if !r.Room(len(member) + 4*exec.LineRoom) {
			return true
		}
		if options > 0 {
			r.Out = resp.AppendArray(r.Out, 1+options)
		}
		r.Out = resp.AppendBulk(r.Out, member)
		if x.withDistance {
			r.Out = appendDistance(r.Out, x.distance(s))
		}
		if x.withHash {
			r.Out = resp.AppendInt(r.Out, int64(s.Hash))
		}
		if x.withPoint {
			r.Out = appendPoint(r.Out, r.Version(), pointOf(s.Hash))
		}
	}
	return x.left == 0
}
