package sortedsets

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/internal/longdouble"
)

// scores is a range of scores.
type scores struct {
	min, max         float64
	minOpen, maxOpen bool // the bound itself is outside
}

// parseScores reads the bounds of a range of scores.
func parseScores(min, max []byte) (s scores, ok bool) {
	var minOK, maxOK bool
	s.min, s.minOpen, minOK = parseBound(min)
	s.max, s.maxOpen, maxOK = parseBound(max)
	return s, minOK && maxOK
}

// parseBound reads a score, or "(" and a score that is outside. As for strtod, spaces in front are
// skipped, nothing is 0, what is too large is infinite, and a zero byte ends the text.
func parseBound(text []byte) (score float64, open, ok bool) {
	if len(text) > 0 && text[0] == '(' {
		open, text = true, text[1:]
	}
	if len(text) > longdouble.MaxText {
		return 0, open, false
	}
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	if len(text) == 0 {
		return 0, open, true
	}
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	score, _ = parseFloat(text)
	return score, open, !math.IsNaN(score)
}

// names is a range of members, for sorted sets whose members all have one score.
type names struct {
	min, max []byte // views of the arguments
	minOpen  bool
	maxOpen  bool
	minEnd   end
	maxEnd   end
}

// end says that a bound is in front of all members, or behind them.
type end int8

const (
	inside end = iota
	front
	behind
)

// parseNames reads the bounds of a range of members: "[" and a member that is inside, "(" and one
// that is outside, "-" and "+".
func parseNames(min, max []byte) (n names, ok bool) {
	var minOK, maxOK bool
	n.min, n.minEnd, n.minOpen, minOK = parseName(min)
	n.max, n.maxEnd, n.maxOpen, maxOK = parseName(max)
	return n, minOK && maxOK
}

func parseName(text []byte) (name []byte, at end, open, ok bool) {
	switch {
	case len(text) == 0:
		return nil, inside, false, false
	case text[0] == '[' || text[0] == '(':
		return text[1:], inside, text[0] == '(', true
	case len(text) == 1 && text[0] == '-':
		return nil, front, false, true
	case len(text) == 1 && text[0] == '+':
		return nil, behind, false, true
	}
	return nil, inside, false, false
}
