package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// zRange: ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]
func zRange(r *exec.Request) { answerRange(r, query{}) }

// zRevRange: ZREVRANGE key start stop [WITHSCORES]
func zRevRange(r *exec.Request) { answerRange(r, query{by: byPosition, backwards: true}) }

// zRangeByScore: ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
func zRangeByScore(r *exec.Request) { answerRange(r, query{by: byScore}) }

// zRevRangeByScore: ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]
func zRevRangeByScore(r *exec.Request) { answerRange(r, query{by: byScore, backwards: true}) }

// zRangeByLex: ZRANGEBYLEX key min max [LIMIT offset count]
func zRangeByLex(r *exec.Request) { answerRange(r, query{by: byName}) }

// zRevRangeByLex: ZREVRANGEBYLEX key max min [LIMIT offset count]
func zRevRangeByLex(r *exec.Request) { answerRange(r, query{by: byName, backwards: true}) }

func answerRange(r *exec.Request, q query) {
	q, problem := parseRange(r.Args, 2, q, false)
	if problem != "" {
		r.Fail(problem)
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
	p := q.of(&s)
	if s.isLong(&p) {
		replyPinned(r, &s, p, q.withScores)
		return
	}
	r.Out = appendHead(r.Out, r.Version(), p.len(), q.withScores)
	paired, v := q.withScores && r.Version() == resp.RESP3, r.Version()
	out := r.Out // in a register of its own: most of a long reply's time is spent here
	s.Each(p, func(member shape.Item, score float64) bool {
		if room := member.Size() + 2*exec.LineRoom; cap(out)-len(out) < room {
			r.Out = out
			fits := r.Room(room)
			if out = r.Out; !fits {
				return false
			}
		}
		if paired {
			out = resp.AppendArray(out, 2)
		}
		out = appendMember(out, member)
		if q.withScores {
			out = resp.AppendDouble(out, v, score)
		}
		return true
	})
	r.Out = out
}

// appendHead appends the head of a reply of n members: in RESP3 members with scores are pairs.
func appendHead(dst []byte, v resp.Version, n int, withScores bool) []byte {
	if withScores && v != resp.RESP3 {
		n *= 2
	}
	return resp.AppendArray(dst, n)
}

func appendMember(dst []byte, member shape.Item) []byte {
	var number shape.Decimal
	return resp.AppendBulk(dst, member.Text(&number))
}

// isLong reports whether the reply with a span is made in slices.
func (s *View) isLong(p *Span) bool {
	return s.isBig && exec.IsLong(p.len(), s.big.v.Bytes()/int64(s.length)*int64(p.len()))
}

// replyPinned answers a long span in slices.
func replyPinned(r *exec.Request, s *View, p Span, withScores bool) {
	version := r.Version()
	head := appendHead(nil, version, p.len(), withScores)
	b, length := s.big, s.length
	r.ReplyPinned(b.v, head, func(pin *engine.ValuePin, dst []byte) ([]byte, bool) {
		now := View{length: length, big: b, isBig: true}
		now.big.tree.Pin = pin
		done := 0
		now.Each(p, func(member shape.Item, score float64) bool {
			if withScores && version == resp.RESP3 {
				dst = resp.AppendArray(dst, 2)
			}
			dst = appendMember(dst, member)
			if withScores {
				dst = resp.AppendDouble(dst, version, score)
			}
			done++
			return !exec.SliceIsFull(dst)
		})
		if p.backwards {
			p.to -= done
		} else {
			p.from += done
		}
		return dst, p.len() == 0
	})
}
