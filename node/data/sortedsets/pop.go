package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
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
		locks.Stop(locks.First, locks.Sum)
		return
	}
	s, ok := open(r, t, key)
	if !ok {
		return
	}
	n := min(count-locks.Sum, int64(s.Len()))
	paired := !single && r.Version() == resp.RESP3
	if locks.First == 0 {
		r.Out = appendHead(r.Out, resp.RESP2, int(n), !paired)
	}
	s.popRun(&locks, int(n), last, paired)
}

// popRun replies and removes n members, in runs.
func (s *sorted) popRun(locks *exec.KeyLocks, n int, last, paired bool) {
	now := min(n, removedAtOnce)
	p := Span{to: now}
	if last {
		p = Span{from: s.Len() - now, to: s.Len(), backwards: true}
	}
	if !s.reply(p, paired) {
		return
	}
	if err := s.removeSpan(p.from, now); err != nil {
		panic("BUG: a shorter value does not fit: " + err.Error())
	}
	if now < n {
		locks.Hold()
		locks.Stop(locks.First+1, locks.Sum+int64(now))
		return
	}
	locks.Whole()
}

// reply answers the members of a span with their scores, without a head.
func (s *sorted) reply(p Span, paired bool) (ok bool) {
	r := s.r
	ok = true
	s.Each(p, func(member shape.Item, score float64) bool {
		if ok = r.Room(member.Len() + 2*exec.LineRoom); !ok {
			return false
		}
		if paired {
			r.Out = resp.AppendArray(r.Out, 2)
		}
		r.Out = appendMember(r.Out, member)
		r.Out = resp.AppendDouble(r.Out, r.Version(), score)
		return true
	})
	return ok
}

// zMPop: ZMPOP numkeys key... MIN|MAX [COUNT count]
func zMPop(r *exec.Request) {
	keys, last, count, problem := parseMPop(r.Args)
	if problem != "" {
		r.Fail(problem)
		return
	}
	locks := r.LockElements()
	defer locks.Release()
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, locks.Sum)
		return
	}
	for _, key := range keys {
		s, ok := open(r, t, key)
		if !ok {
			return
		}
		if !s.found {
			continue
		}
		n := int(min(count-locks.Sum, int64(s.Len())))
		if locks.First == 0 {
			r.Out = resp.AppendArray(r.Out, 2)
			r.ReplyBulk(key)
			r.Out = resp.AppendArray(r.Out, n)
		}
		s.popRun(&locks, n, last, true)
		return
	}
	r.Out = resp.AppendNullArray(r.Out, r.Version())
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
