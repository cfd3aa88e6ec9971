package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// zScore: ZSCORE key member
func zScore(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := Read(r, t, r.Args[1])
	if !ok {
		return
	}
	replyScore(r, &s, r.Args[2])
}

// replyScore answers the score of a member, or null.
func replyScore(r *exec.Request, s *View, member []byte) {
	if score, ok := s.Score(member); ok {
		r.Out = resp.AppendDouble(r.Out, r.Version(), score)
		return
	}
	r.ReplyNull()
}

// zMScore: ZMSCORE key member...
func zMScore(r *exec.Request) {
	run, ok := r.LockElementRun(r.Args[2:], 1)
	if !ok {
		return
	}
	defer run.Release()
	s, ok := Read(r, run.Txn, r.Args[1])
	if !ok {
		return
	}
	if run.IsFirst() {
		r.Out = resp.AppendArray(r.Out, len(r.Args)-2)
	}
	for _, member := range r.Args[2+run.First : 2+run.End] {
		if !r.Room(exec.LineRoom) {
			return
		}
		replyScore(r, &s, member)
	}
	if !run.GoesOn(0) {
		run.Whole()
	}
}

// zCard: ZCARD key
func zCard(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if s, ok := Read(r, t, r.Args[1]); ok {
		r.ReplyInt(int64(s.Len()))
	}
}

// zRank: ZRANK key member [WITHSCORE]
func zRank(r *exec.Request) { rank(r, false) }

// zRevRank: ZREVRANK key member [WITHSCORE]
func zRevRank(r *exec.Request) { rank(r, true) }

func rank(r *exec.Request, backwards bool) {
	if len(r.Args) > 4 {
		r.FailArity()
		return
	}
	withScore := len(r.Args) == 4
	if withScore && !exec.Is(r.Args[3], "WITHSCORE") {
		r.Fail(exec.ErrSyntax)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := Read(r, t, r.Args[1])
	if !ok {
		return
	}
	position, score, ok := s.Position(r.Args[2])
	switch {
	case !ok && withScore:
		r.Out = resp.AppendNullArray(r.Out, r.Version())
		return
	case !ok:
		r.ReplyNull()
		return
	case backwards:
		position = s.Len() - 1 - position
	}
	if !withScore {
		r.ReplyInt(int64(position))
		return
	}
	r.Out = resp.AppendArray(r.Out, 2)
	r.ReplyInt(int64(position))
	r.Out = resp.AppendDouble(r.Out, r.Version(), score)
}

// zCount: ZCOUNT key min max
func zCount(r *exec.Request) { count(r, byScore) }

// zLexCount: ZLEXCOUNT key min max
func zLexCount(r *exec.Request) { count(r, byName) }

// count answers how many members are in a range.
func count(r *exec.Request, by by) {
	q := query{by: by, count: -1}
	if problem := q.parseBounds(r.Args[2], r.Args[3]); problem != "" {
		r.Fail(problem)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if s, ok := Read(r, t, r.Args[1]); ok {
		p := q.of(&s)
		r.ReplyInt(int64(p.len()))
	}
}
