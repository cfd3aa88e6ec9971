package sortedsets

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// by is what a range is a range of.
type by int8

const (
	byAny by = iota // the options say it
	byPosition
	byScore
	byName
)

// query is a range of members that a command asks for.
type query struct {
	by            by
	backwards     bool
	start, stop   int64
	scores        scores
	names         names
	offset, count int64 // count < 0: all
	withScores    bool
}

// parseRange reads the bounds of a range, which stand from min on, and the options behind them. by
// and backwards are what the command's name says; for ZRANGE and ZRANGESTORE, which stores, options
// do. It returns an error's text, or "".
func parseRange(args [][]byte, min int, q query, stores bool) (_ query, problem string) {
	old := q.by != byAny
	directed := q.backwards
	q.count = -1
	limited := false
	for i := min + 2; i < len(args); i++ {
		left := len(args) - 1 - i
		switch arg := args[i]; {
		case !stores && exec.Is(arg, "WITHSCORES"):
			q.withScores = true
		case exec.Is(arg, "LIMIT") && left >= 2:
			var ok1, ok2 bool
			q.offset, ok1 = resp.ParseInt(args[i+1])
			q.count, ok2 = resp.ParseInt(args[i+2])
			if !ok1 || !ok2 {
				return q, exec.ErrNotInteger
			}
			limited = true
			i += 2
		case !old && !directed && exec.Is(arg, "REV"):
			q.backwards, directed = true, true
		case q.by == byAny && exec.Is(arg, "BYLEX"):
			q.by = byName
		case q.by == byAny && exec.Is(arg, "BYSCORE"):
			q.by = byScore
		default:
			return q, exec.ErrSyntax
		}
	}
	if q.by == byAny {
		q.by = byPosition
	}
	switch {
	case limited && q.count != -1 && q.by == byPosition:
		return q, errLimit
	case q.withScores && q.by == byName:
		return q, errScoresByLex
	}
	return q, q.parseBounds(args[min], args[min+1])
}

// parseBounds reads the bounds of the range. Backwards the larger one stands in front, but
// positions count from the end.
func (q *query) parseBounds(min, max []byte) (problem string) {
	if q.backwards && q.by != byPosition {
		min, max = max, min
	}
	var ok bool
	switch q.by {
	case byScore:
		if q.scores, ok = parseScores(min, max); !ok {
			return errScoreBounds
		}
	case byName:
		if q.names, ok = parseNames(min, max); !ok {
			return errNameBounds
		}
	default:
		var ok1, ok2 bool
		q.start, ok1 = resp.ParseInt(min)
		q.stop, ok2 = resp.ParseInt(max)
		if !ok1 || !ok2 {
			return exec.ErrNotInteger
		}
	}
	return ""
}

// of is the span of the members that the query asks for.
func (q *query) of(s *View) (p Span) {
	switch q.by {
	case byScore:
		p = s.InScores(q.scores)
	case byName:
		p = s.inNames(q.names)
	default:
		p = s.inPositions(q.start, q.stop)
		if q.backwards && p.len() > 0 {
			p.from, p.to = s.Len()-p.to, s.Len()-p.from
		}
		p.backwards = q.backwards
		return p
	}
	p.backwards = q.backwards
	if q.offset != 0 || q.count >= 0 {
		p.limit(q.offset, q.count)
	}
	return p
}
