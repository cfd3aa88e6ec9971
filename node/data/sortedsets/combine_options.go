package sortedsets

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// operation is what a command makes of several sorted sets.
type operation int8

const (
	union operation = iota
	inter
	diff
)

// aggregate is what becomes of the scores that a member has in several sets.
type aggregate int8

const (
	sum aggregate = iota
	least
	most
)

// of aggregates the score x with y, which may not be a number. A sum that is not one is 0, as that
// of two infinities that cancel each other.
func (a aggregate) of(x, y float64) float64 {
	switch a {
	case least:
		if y < x {
			return y
		}
		return x
	case most:
		if y > x {
			return y
		}
		return x
	}
	return number(x + y)
}

// number is f, or 0 if it is not a number.
func number(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// combining is the arguments of ZUNION, ZINTER, ZDIFF, ZINTERCARD and the STORE forms.
type combining struct {
	op         operation
	store      []byte // the key for the result; nil: it is answered
	counts     bool   // only how many members there are is answered
	limit      int64  // of these; 0: none
	keys       [][]byte
	weights    [][]byte // nil: all 1
	weightsAt  int      // where they stand behind the keys
	aggregate  aggregate
	withScores bool
}

// parseKeys reads how many keys there are, and the keys. It returns what follows them, or an
// error's text.
func (c *combining) parseKeys(name string, args [][]byte) (rest [][]byte, problem string) {
	n, ok := resp.ParseInt(args[0])
	switch {
	case !ok:
		return nil, exec.ErrNotInteger
	case n < 1:
		return nil, "ERR at least 1 input key is needed for '" + name + "' command"
	case n > int64(len(args)-1):
		return nil, exec.ErrSyntax
	}
	c.keys = args[1 : 1+n]
	return args[1+n:], ""
}

// parseOptions reads what stands behind the keys.
func (c *combining) parseOptions(args [][]byte) (problem string) {
	all := len(args)
	for combines := c.op != diff && !c.counts; len(args) > 0; {
		switch word := args[0]; {
		case combines && len(args) > len(c.keys) && exec.Is(word, "WEIGHTS"):
			c.weightsAt = all - len(args) + 1
			c.weights, args = args[1:1+len(c.keys)], args[1+len(c.keys):]
			for _, w := range c.weights {
				if _, ok := ParseScore(w); !ok {
					return errWeight
				}
			}
		case combines && len(args) > 1 && exec.Is(word, "AGGREGATE"):
			switch {
			case exec.Is(args[1], "SUM"):
				c.aggregate = sum
			case exec.Is(args[1], "MIN"):
				c.aggregate = least
			case exec.Is(args[1], "MAX"):
				c.aggregate = most
			default:
				return exec.ErrSyntax
			}
			args = args[2:]
		case c.store == nil && !c.counts && exec.Is(word, "WITHSCORES"):
			c.withScores, args = true, args[1:]
		case c.counts && len(args) > 1 && exec.Is(word, "LIMIT"):
			var ok bool
			if c.limit, ok = resp.ParseInt(args[1]); !ok || c.limit < 0 {
				return errCardLimit
			}
			args = args[2:]
		default:
			return exec.ErrSyntax
		}
	}
	return ""
}

// weighted is the score that counts for a member of the i-th set. It may not be a number.
func (c *combining) weighted(i int, score float64) float64 {
	if c.weights == nil {
		return score
	}
	w, _ := ParseScore(c.weights[i])
	return w * score
}
