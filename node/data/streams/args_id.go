package streams

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/node/exec"
)

// maxIDArg is the longest ID, in bytes, that Redis parses.
const maxIDArg = 127

// parseID parses an ID as clients write it: ms-seq, or ms alone for ms-missing.
func parseID(arg []byte, missing uint64) (id ID, ok bool) {
	if len(arg) > maxIDArg {
		return id, false
	}
	ms, seq, both := bytes.Cut(arg, []byte{'-'})
	if id.Ms, ok = parseNumber(ms); !ok || !both {
		id.Seq = missing
		return id, ok
	}
	id.Seq, ok = parseNumber(seq)
	return id, ok
}

// parseNumber parses a half of an ID. Like Redis it takes what the C library's strtoull takes, but no
// number that is plainly negative.
func parseNumber(arg []byte) (n uint64, ok bool) {
	if n, ok = digits(arg); ok {
		return n, true
	}
	arg, _, _ = bytes.Cut(arg, []byte{0})
	text := bytes.TrimLeft(arg, " \t\n\v\f\r")
	minus := len(text) > 0 && text[0] == '-'
	if len(text) > 0 && (minus || text[0] == '+') {
		text = text[1:]
	}
	if n, ok = digits(text); !ok || !minus {
		return n, ok
	}
	plain := len(arg) == len(text)+1 && text[0] != '0' && n <= -math.MinInt64
	return -n, !plain
}

// digits parses decimal digits, of which the first ones can be zeros.
func digits(text []byte) (n uint64, ok bool) {
	for _, c := range text {
		c -= '0'
		if c > 9 || n > (math.MaxUint64-uint64(c))/10 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return n, len(text) > 0
}

// idArg parses an argument that is an ID. If it is none, idArg answers the error and ok is false.
func idArg(r *exec.Request, arg []byte) (id ID, ok bool) {
	if id, ok = parseID(arg, 0); !ok {
		r.Fail(ErrID)
	}
	return id, ok
}

// parseAnyID is parseID for an argument that can also be - or +, the least or the greatest ID.
func parseAnyID(arg []byte, missing uint64) (id ID, ok bool) {
	switch string(arg) {
	case "-":
		return minID, true
	case "+":
		return maxID, true
	}
	return parseID(arg, missing)
}

// parseBound parses an end of a range. excluded: it has a ( in front, and the ID itself is outside.
func parseBound(arg []byte, missing uint64) (id ID, excluded, ok bool) {
	if len(arg) > 1 && arg[0] == '(' {
		id, ok = parseID(arg[1:], missing)
		return id, true, ok
	}
	id, ok = parseAnyID(arg, missing)
	return id, false, ok
}

// parseStart parses the lower end of a range: the range has the IDs from id on.
func parseStart(arg []byte) (id ID, problem string) {
	id, excluded, ok := parseBound(arg, 0)
	if !ok {
		return id, ErrID
	}
	if excluded {
		if id, ok = id.next(); !ok {
			return id, ErrStart
		}
	}
	return id, ""
}

// parseEnd parses the upper end of a range: the range has the IDs up to id.
func parseEnd(arg []byte) (id ID, problem string) {
	id, excluded, ok := parseBound(arg, math.MaxUint64)
	if !ok {
		return id, ErrID
	}
	if excluded {
		if id, ok = id.prev(); !ok {
			return id, ErrEnd
		}
	}
	return id, ""
}
