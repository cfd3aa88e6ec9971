package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/exec"
)

// addOptions are the options of ZADD.
type addOptions struct {
	ifNew, ifOld         bool // NX, XX
	ifGreater, ifLess    bool // GT, LT
	countChanged, addsTo bool // CH, INCR
	first                int  // where the first score stands among the arguments
}

// parseAdd reads the options of ZADD, and returns an error's text, or "".
func parseAdd(args [][]byte) (o addOptions, problem string) {
	o.first = 2
options:
	for ; o.first < len(args); o.first++ {
		switch arg := args[o.first]; {
		case exec.Is(arg, "NX"):
			o.ifNew = true
		case exec.Is(arg, "XX"):
			o.ifOld = true
		case exec.Is(arg, "CH"):
			o.countChanged = true
		case exec.Is(arg, "INCR"):
			o.addsTo = true
		case exec.Is(arg, "GT"):
			o.ifGreater = true
		case exec.Is(arg, "LT"):
			o.ifLess = true
		default:
			break options
		}
	}
	return o, o.check(len(args) - o.first)
}

// check returns the error of options that exclude each other, or of the number of arguments behind
// them.
func (o *addOptions) check(rest int) (problem string) {
	switch {
	case rest == 0 || rest%2 != 0:
		return exec.ErrSyntax
	case o.ifNew && o.ifOld:
		return errNXAndXX
	case o.ifGreater && o.ifLess, o.ifNew && (o.ifGreater || o.ifLess):
		return errGTAndLT
	case o.addsTo && rest > 2:
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
func (o *addOptions) apply(old float64, there bool, score float64) (x outcome) {
	if !there {
		return outcome{score: score, write: !o.ifOld, added: !o.ifOld, none: o.ifOld}
	}
	if o.ifNew {
		return outcome{score: old, none: true}
	}
	if o.addsTo {
		if score += old; score != score {
			return outcome{nan: true}
		}
	}
	if o.ifLess && score >= old || o.ifGreater && score <= old {
		return outcome{score: old, none: true}
	}
	return outcome{score: score, write: score != old}
}
