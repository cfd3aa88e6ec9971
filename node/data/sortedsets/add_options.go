package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Options are the options of ZADD; GEOADD has some of them.
type Options struct {
	IfNew, IfOld         bool // NX, XX
	IfGreater, IfLess    bool // GT, LT
	CountChanged, AddsTo bool // CH, INCR
	first                int  // where the first score stands among the arguments
}

// parseAdd reads the options of ZADD, and returns an error's text, or "".
func parseAdd(args [][]byte) (o Options, problem string) {
	o.first = 2
options:
	for ; o.first < len(args); o.first++ {
		switch arg := args[o.first]; {
		case exec.Is(arg, "NX"):
			o.IfNew = true
		case exec.Is(arg, "XX"):
			o.IfOld = true
		case exec.Is(arg, "CH"):
			o.CountChanged = true
		case exec.Is(arg, "INCR"):
			o.AddsTo = true
		case exec.Is(arg, "GT"):
			o.IfGreater = true
		case exec.Is(arg, "LT"):
			o.IfLess = true
		default:
			break options
		}
	}
	return o, o.check(len(args) - o.first)
}

// check returns the error of options that exclude each other, or of the number of arguments behind
// them.
func (o *Options) check(rest int) (problem string) {
	switch {
	case rest == 0 || rest%2 != 0:
		return exec.ErrSyntax
	case o.IfNew && o.IfOld:
		return errNXAndXX
	case o.IfGreater && o.IfLess, o.IfNew && (o.IfGreater || o.IfLess):
		return errGTAndLT
	case o.AddsTo && rest > 2:
		return errIncrPairs
	}
	return ""
}

// outcome is what ZADD makes of one member.
type outcome struct {
	score float64 // it has then
	write bool    // the score is to be stored
	added bool
	nan   bool // the sum is not a number
	none  bool // the options forbid it
}

// apply decides what becomes of a member that has old as its score, if it is there.
func (o *Options) apply(old float64, there bool, score float64) (x outcome) {
	if !there {
		return outcome{score: score, write: !o.IfOld, added: !o.IfOld, none: o.IfOld}
	}
	if o.IfNew {
		return outcome{score: old, none: true}
	}
	if o.AddsTo {
		if score += old; score != score {
			return outcome{nan: true}
		}
	}
	if o.IfLess && score >= old || o.IfGreater && score <= old {
		return outcome{score: old, none: true}
	}
	return outcome{score: score, write: score != old}
}
