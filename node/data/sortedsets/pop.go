package sortedsets

import (
	"fmt"
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// zPopMin: ZPOPMIN key [count]
func zPopMin(r *exec.Request) { pop(r, false) }

// zPopMax: ZPOPMAX key [count]
func zPopMax(r *exec.Request) { pop(r, true) }

func pop(r *exec.Request, last bool) {
	count, single := int64(1), len(r.Args) == 2
	if len(r.Args) > 3 {
		r.Fail(exec.ErrSyntax)
		return
	}
	if !single {
		var ok bool
		if count, ok = resp.ParseInt(r.Args[2]); !ok || count < 0 {
			r.Fail(errNegative)
			return
		}
	}
	locks := r.LockElements()
	defer locks.Release()
	t, key, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	s, ok := open(r, t, key)
	if !ok {
		return
	}
	rest, ok := restOf(&locks, count, last, &s)
	if !ok {
		return
	}
	n := rest.left
	paired := !single && r.Version() == resp.RESP3
	if locks.First == 0 {
		r.Out = appendHead(r.Out, resp.RESP2, n, !paired)
	}
	s.popRun(&locks, rest, last, paired)
}

// popped is how far a command has come that pops members.
type popped struct {
	left int // members that it will pop
	key  int // which of several keys has them
}

// restOf is what is left to pop of a set, at most count members in all. If the set has fewer than
// earlier runs have promised, restOf answers the error and ok is false.
func restOf(locks *exec.KeyLocks, count int64, last bool, s *sorted) (rest popped, ok bool) {
	before, begun := locks.State.(*popped)
	if !begun {
		rest.left = int(min(count, int64(s.Len())))
		if s.r.Woken {
			rest.left = s.inOneRun(rest.left, last)
		}
		return rest, true
	}
	if s.Len() < before.left {
		s.r.Fail(exec.ErrGone)
		return popped{}, false
	}
	return *before, true
}

// popRun replies and removes what is left to pop, in runs.
func (s *sorted) popRun(locks *exec.KeyLocks, rest popped, last, paired bool) {
	now := min(rest.left, removedAtOnce)
	p := s.first(now, last)
	now, fits := s.reply(p, paired)
	if !fits {
		return
	}
	if last {
		p.from = p.to - now
	}
	if now == rest.left {
		s.r.Take(s.txn, s.key, locks.Begun())
	}
	removed, err := s.removeSome(p.from, now, math.MaxInt)
	if err != nil {
		panic("BUG: a shorter value does not fit: " + err.Error())
	}
	if removed != now {
		panic(fmt.Sprintf("BUG: %d members are popped, and %d removed", now, removed))
	}
	if now < rest.left {
		locks.State = &popped{left: rest.left - now, key: rest.key}
		locks.Hold()
		locks.Stop(locks.First+1, 0)
		return
	}
	if event := "zpopmin"; rest.left > 0 {
		if last {
			event = "zpopmax"
		}
		s.r.NotifyLeft(s.txn, keyevent.SortedSet, event, s.key)
	}
	locks.Whole()
}

// reply answers members of a span with their scores, without a head: all n of them, unless they are
// long. It returns false if there is no room for them.
func (s *sorted) reply(p Span, paired bool) (n int, fits bool) {
	r := s.r
	begun := len(r.Out)
	fits = true
	s.Each(p, func(member shape.Item, score float64) bool {
		if fits = r.Room(member.Len() + 2*exec.LineRoom); !fits {
			return false
		}
		if paired {
			r.Out = resp.AppendArray(r.Out, 2)
		}
		r.Out = appendMember(r.Out, member)
		r.Out = resp.AppendDouble(r.Out, r.Version(), score)
		n++
		return len(r.Out)-begun < exec.RunBytes
	})
	return n, fits
}

// inOneRun returns how many of the n lowest or last members one run pops.
func (s *sorted) inOneRun(n int, last bool) (fits int) {
	bytes := 0
	s.Each(s.first(min(n, s.Len(), removedAtOnce), last), func(member shape.Item, _ float64) bool {
		fits++
		bytes += member.Size() + 2*exec.LineRoom
		return bytes < exec.RunBytes
	})
	return fits
}

// first is the span of the n lowest or last members.
func (s *sorted) first(n int, last bool) Span {
	if last {
		return Span{from: s.Len() - n, to: s.Len(), backwards: true}
	}
	return Span{to: n}
}

// zMPop: ZMPOP numkeys key... MIN|MAX [COUNT count]
func zMPop(r *exec.Request) {
	zmPopOr(r, r.Args, func() bool { return true }, func(engine.Txn) { r.Out = resp.AppendNullArray(r.Out, r.Version()) })
}

// zmPopOr pops from the first set that has members, or calls none if there is none. args[1] is numkeys. limited
// checks, behind all other arguments, what stands before it.
func zmPopOr(r *exec.Request, args [][]byte, limited func() bool, none func(t engine.Txn)) {
	keys, last, count, problem := parseMPop(args)
	if problem != "" {
		r.Fail(problem)
		return
	}
	if !limited() {
		return
	}
	locks := r.LockElements()
	defer locks.Release()
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	if rest, begun := locks.State.(*popped); begun {
		keys = keys[rest.key : rest.key+1]
	}
	for i, key := range keys {
		s, ok := open(r, t, key)
		if !ok {
			return
		}
		if (!s.found || r.Leaves(t, engine.TypeZSet, nil, key)) && locks.First == 0 {
			continue
		}
		rest, ok := restOf(&locks, count, last, &s)
		if !ok {
			return
		}
		if locks.First == 0 {
			rest.key = i
			r.Out = resp.AppendArray(r.Out, 2)
			r.ReplyBulk(key)
			r.Out = resp.AppendArray(r.Out, rest.left)
		}
		s.popRun(&locks, rest, last, true)
		return
	}
	none(t)
}

// parseMPop reads the arguments of ZMPOP.
func parseMPop(args [][]byte) (keys [][]byte, last bool, count int64, problem string) {
	n, ok := resp.ParseInt(args[1])
	if !ok || n < 1 {
		return nil, false, 0, errNumKeys
	}
	if n > int64(len(args)-3) {
		return nil, false, 0, exec.ErrSyntax
	}
	keys, args = args[2:2+n], args[2+n:]
	switch {
	case exec.Is(args[0], "MAX"):
		last = true
	case !exec.Is(args[0], "MIN"):
		return nil, false, 0, exec.ErrSyntax
	}
	if len(args) == 1 {
		return keys, last, 1, ""
	}
	if len(args) < 3 || !exec.Is(args[1], "COUNT") {
		return nil, false, 0, exec.ErrSyntax
	}
	if count, ok = resp.ParseInt(args[2]); !ok || count < 1 {
		return nil, false, 0, errCount
	}
	if len(args) > 3 {
		return nil, false, 0, exec.ErrSyntax
	}
	return keys, last, count, ""
}
