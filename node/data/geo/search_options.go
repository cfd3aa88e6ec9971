package geo

import (
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/sortedsets"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// The names of the units, and how many metres they have.
func parseUnit(word []byte) (metres float64, ok bool) {
	switch {
	case exec.Is(word, "M"):
		return 1, true
	case exec.Is(word, "KM"):
		return 1000, true
	case exec.Is(word, "FT"):
		return 0.3048, true
	case exec.Is(word, "MI"):
		return 1609.34, true
	}
	return 0, false
}

// direction is how results are ordered.
type direction int8

const (
	unordered direction = iota
	nearest
	farthest
)

// form is which of the commands a search is.
type form struct {
	source   int  // the argument that is the searched set's key
	options  int  // the first argument that may be an option
	search   bool // GEOSEARCH or GEOSEARCHSTORE
	byMember bool // GEORADIUSBYMEMBER
	stores   bool // GEORADIUS and GEORADIUSBYMEMBER may store
	store    bool // GEOSEARCHSTORE
}

// search is the arguments of a search.
type search struct {
	form
	region
	withDistance, withHash, withPoint bool
	direction                         direction
	count                             int64  // 0: all
	any                               bool   // of these, whichever are found first
	storeKey                          []byte // nil: the results are answered
	storeAt                           int    // where it stands among the arguments
	storeDistance                     bool

	all                                    int // arguments
	fromMember, fromPoint, byRadius, byBox bool
}

// parse reads the arguments. set is the searched set; found says whether there is one. It returns
// an error's text, or "".
func (q *search) parse(args [][]byte, set *sortedsets.View, found bool) (problem string) {
	if q.store {
		q.storeAt = 1
	}
	switch {
	case q.search:
	case !q.byMember:
		if q.center, problem = parsePoint(args[2:]); problem != "" {
			return problem
		}
		if problem = q.parseRadius(args[4:]); problem != "" {
			return problem
		}
	case found:
		if !q.from(set, args[2]) {
			return errMember
		}
		if problem = q.parseRadius(args[3:]); problem != "" {
			return problem
		}
	}
	q.all = len(args)
	for rest := args[q.options:]; len(rest) > 0; {
		n, problem := q.parseOption(rest, set, found)
		if problem != "" {
			return problem
		}
		rest = rest[n:]
	}
	return q.check(string(args[0]))
}

// parseOption reads an option, and returns how many arguments it has.
func (q *search) parseOption(args [][]byte, set *sortedsets.View, found bool) (n int, problem string) {
	word, more := args[0], len(args)-1
	storing := more > 0 && q.stores
	switch {
	case exec.Is(word, "WITHDIST"):
		q.withDistance = true
	case exec.Is(word, "WITHHASH"):
		q.withHash = true
	case exec.Is(word, "WITHCOORD"):
		q.withPoint = true
	case exec.Is(word, "ANY"):
		q.any = true
	case exec.Is(word, "ASC"):
		q.direction = nearest
	case exec.Is(word, "DESC"):
		q.direction = farthest
	case more > 0 && exec.Is(word, "COUNT"):
		var ok bool
		if q.count, ok = resp.ParseInt(args[1]); !ok {
			return 0, exec.ErrNotInteger
		}
		if q.count <= 0 {
			return 0, errCount
		}
		return 2, ""
	case storing && exec.Is(word, "STORE"):
		q.storeAt, q.storeDistance = q.all-more, false
		return 2, ""
	case storing && exec.Is(word, "STOREDIST"):
		q.storeAt, q.storeDistance = q.all-more, true
		return 2, ""
	case q.store && exec.Is(word, "STOREDIST"):
		q.storeDistance = true
	case q.search:
		return q.parseRegion(args, set, found)
	default:
		return 0, exec.ErrSyntax
	}
	return 1, ""
}

// parseRegion reads what GEOSEARCH searches.
func (q *search) parseRegion(args [][]byte, set *sortedsets.View, found bool) (n int, problem string) {
	word, more := args[0], len(args)-1
	switch {
	case more > 0 && !q.fromPoint && exec.Is(word, "FROMMEMBER"):
		if found && !q.from(set, args[1]) {
			return 0, errMember
		}
		q.fromMember = true
		return 2, ""
	case more > 1 && !q.fromMember && exec.Is(word, "FROMLONLAT"):
		q.fromPoint = true
		q.center, problem = parsePoint(args[1:])
		return 3, problem
	case more > 1 && !q.byBox && exec.Is(word, "BYRADIUS"):
		q.byRadius = true
		return 3, q.parseRadius(args[1:])
	case more > 2 && !q.byRadius && exec.Is(word, "BYBOX"):
		q.byBox = true
		return 4, q.parseBox(args[1:])
	}
	return 0, exec.ErrSyntax
}

// from puts the center at a member.
func (q *search) from(set *sortedsets.View, member []byte) (ok bool) {
	score, ok := set.Score(member)
	q.center = pointOf(score)
	return ok
}

func (q *search) parseRadius(args [][]byte) (problem string) {
	var ok bool
	if q.radius, ok = sortedsets.ParseScore(args[0]); !ok {
		return errRadius
	}
	if q.radius < 0 {
		return errRadiusSign
	}
	if q.unit, ok = parseUnit(args[1]); !ok {
		return errUnit
	}
	return ""
}

func (q *search) parseBox(args [][]byte) (problem string) {
	var ok bool
	q.isBox = true
	if q.width, ok = sortedsets.ParseScore(args[0]); !ok {
		return errWidth
	}
	if q.height, ok = sortedsets.ParseScore(args[1]); !ok {
		return errHeight
	}
	if q.width < 0 || q.height < 0 {
		return errBoxSign
	}
	if q.unit, ok = parseUnit(args[2]); !ok {
		return errUnit
	}
	return ""
}

// check finds options that are missing or exclude each other.
func (q *search) check(name string) (problem string) {
	switch {
	case q.storeAt > 0 && (q.withDistance || q.withHash || q.withPoint):
		if q.store {
			return "ERR GEOSEARCHSTORE" + errStoreOptions
		}
		return "ERR STORE option in GEORADIUS" + errStoreOptions
	case q.search && !q.fromMember && !q.fromPoint:
		return errFrom + strings.ToValidUTF8(name, "?")
	case q.search && !q.byRadius && !q.byBox:
		return errBy + strings.ToValidUTF8(name, "?")
	case q.any && q.count == 0:
		return errAny
	case q.count != 0 && q.direction == unordered && !q.any:
		q.direction = nearest
	}
	return ""
}
