package streams

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// refs says what happens to the pending entries that refer to an entry when it is deleted.
type refs uint8

const (
	keepRef refs = 1 + iota // they stay
	delRef                  // they are removed, in all groups
	acked                   // no entry is deleted that a group has not read or acknowledged
)

// parseRefs parses KEEPREF, DELREF or ACKED. It returns 0 if the argument is none of these.
func parseRefs(arg []byte) refs {
	switch {
	case exec.Is(arg, "KEEPREF"):
		return keepRef
	case exec.Is(arg, "DELREF"):
		return delRef
	case exec.Is(arg, "ACKED"):
		return acked
	}
	return 0
}

// trimLimit is how many entries a trim with ~ removes at most, unless LIMIT says otherwise.
const trimLimit = 100 * 100

// strategy is what a stream is trimmed by.
type strategy uint8

const (
	noTrim strategy = iota
	byLength
	byID
)

// trimArgs are the options of XADD and XTRIM.
type trimArgs struct {
	strategy strategy
	approx   bool // ~: whole blocks only
	maxLen   int64
	minID    ID
	limit    int64 // entries, 0: any number
	refs     refs

	// Of XADD.
	noMkStream bool
	id         ID
	idGiven    bool // not *
	seqGiven   bool // not ms-*
	fields     int  // the argument behind the ID
}

// parseTrim parses the options from argument 2 on, for XADD up to the ID.
func parseTrim(args [][]byte, add bool) (a trimArgs, problem string) {
	i, limited := 2, false
options:
	for ; i < len(args); i++ {
		more, refs := len(args)-1-i, parseRefs(args[i])
		switch arg := args[i]; {
		case add && len(arg) == 1 && arg[0] == '*':
			break options
		case exec.Is(arg, "MAXLEN") && more > 0:
			i, problem = a.parseStrategy(args, i, byLength)
		case exec.Is(arg, "MINID") && more > 0:
			i, problem = a.parseStrategy(args, i, byID)
		case exec.Is(arg, "LIMIT") && more > 0:
			i++
			limited = true
			if a.limit, problem = parseCount(args[i]); problem == "" && a.limit < 0 {
				problem = ErrLimit
			}
		case refs != 0 && a.refs == 0:
			a.refs = refs
		case add && exec.Is(arg, "NOMKSTREAM"):
			a.noMkStream = true
		case add:
			problem = a.parseNewID(arg)
			break options
		default:
			problem = exec.ErrSyntax
		}
		if problem != "" {
			return a, problem
		}
	}
	if problem == "" {
		a.fields, problem = i+1, a.finish(add, limited)
	}
	return a, problem
}

// parseStrategy parses MAXLEN or MINID, argument i, and what belongs to it. last is the last argument of
// that.
func (a *trimArgs) parseStrategy(args [][]byte, i int, by strategy) (last int, problem string) {
	if a.strategy != noTrim {
		return i, ErrTwoStrategies
	}
	i++
	a.strategy = by
	if next := args[i]; len(next) == 1 && (next[0] == '~' || next[0] == '=') && i+1 < len(args) {
		a.approx = next[0] == '~'
		i++
	}
	if by == byID {
		var ok bool
		if a.minID, ok = parseID(args[i], 0); !ok {
			problem = ErrID
		}
		return i, problem
	}
	if a.maxLen, problem = parseCount(args[i]); problem == "" && a.maxLen < 0 {
		problem = ErrMaxLen
	}
	return i, problem
}

// parseNewID parses the ID of XADD that is not *.
func (a *trimArgs) parseNewID(arg []byte) (problem string) {
	a.idGiven, a.seqGiven = true, true
	if n := bytes.IndexByte(arg, '-'); n > 0 && len(arg) <= maxIDArg && string(arg[n:]) == "-*" {
		a.seqGiven = false
		arg = arg[:n]
	}
	var ok bool
	if a.id, ok = parseID(arg, 0); !ok {
		return ErrID
	}
	return ""
}

// finish looks at what the options say together.
func (a *trimArgs) finish(add, limited bool) (problem string) {
	switch {
	case a.limit != 0 && a.strategy == noTrim:
		return ErrLimitAlone
	case !add && a.strategy == noTrim:
		return ErrNoStrategy
	case limited && !a.approx:
		return ErrLimitExact
	case !limited && a.approx:
		a.limit = trimLimit
	}
	if a.refs == 0 {
		a.refs = keepRef
	}
	return ""
}

// parseCount parses an integer.
func parseCount(arg []byte) (n int64, problem string) {
	n, ok := resp.ParseInt(arg)
	if !ok {
		return 0, exec.ErrNotInteger
	}
	return n, ""
}

// nextID is the ID of an entry that XADD adds at a time, in unix milliseconds, behind the last one.
func (a *trimArgs) nextID(last ID, now int64) (id ID, problem string) {
	next, ok := last.next()
	switch {
	case !ok:
		return id, ErrIDExhausted
	case !a.idGiven && uint64(max(now, 0)) > last.Ms:
		return ID{Ms: uint64(now)}, ""
	case !a.idGiven:
		return next, ""
	}
	id = a.id
	if !a.seqGiven && id.Ms == last.Ms {
		if last.Seq == math.MaxUint64 {
			return id, ErrIDTooSmall
		}
		id.Seq = last.Seq + 1
	}
	if id.less(next) {
		return id, ErrIDTooSmall
	}
	return id, ""
}
