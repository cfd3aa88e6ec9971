package streams

import (
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Of XREAD and XREADGROUP.
const (
	ErrReadGroup   = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
	ErrReadNoAck   = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."
	ErrReadClaim   = "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead."
	ErrGroupNeeded = "ERR Missing GROUP option for XREADGROUP"
	ErrMinIdle     = "ERR min-idle-time is not an integer"
	ErrMinIdleLow  = "ERR min-idle-time must be a positive integer"
	ErrReadNew     = "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
	ErrReadLast    = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by " +
		"specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
	ErrReadLatest = "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by " +
		"specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set."
	ErrReadAwaits     = "ERR XREAD and XREADGROUP that wait can name at most 64 streams of one slot"
	errReadXRead      = "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
	errReadXReadGroup = "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
)

// noGroupToRead is the error of XREADGROUP for a stream or a group that is not there.
func noGroupToRead(key, group []byte) string {
	return "NOGROUP No such key '" + command.Cut(key) + "' or consumer group '" + command.Cut(group) +
		"' in XREADGROUP with GROUP option"
}

// noIdle is the minIdle of a command without CLAIM.
const noIdle = -1

// readArgs are the arguments of XREAD and XREADGROUP.
type readArgs struct {
	grouped  bool // it is XREADGROUP
	group    []byte
	consumer []byte
	count    int // entries of each stream
	blocks   bool
	limit    time.Duration // 0: none
	noAck    bool
	minIdle  int64 // milliseconds, or noIdle
	keys     [][]byte
	ids      [][]byte // as many
	firstID  int      // the argument that is the first of them
}

// parseRead parses the options and finds the keys and the IDs, which are looked at later, each with its key.
func parseRead(args [][]byte, grouped bool) (q readArgs, problem string) {
	q = readArgs{grouped: grouped, count: math.MaxInt, minIdle: noIdle}
	for i := 1; i < len(args); i++ {
		switch option, more := args[i], len(args)-1-i; {
		case exec.Is(option, "BLOCK") && more > 0:
			i++
			q.blocks = true
			q.limit, problem = exec.ParseMillis(args[i])
		case exec.Is(option, "COUNT") && more > 0:
			i++
			problem = q.parseCount(args[i])
		case exec.Is(option, "STREAMS") && more > 0:
			return q, q.divide(args, i+1)
		case exec.Is(option, "GROUP") && more > 1:
			q.group, q.consumer = args[i+1], args[i+2]
			i += 2
			problem = q.only(ErrReadGroup)
		case exec.Is(option, "NOACK"):
			q.noAck = true
			problem = q.only(ErrReadNoAck)
		case exec.Is(option, "CLAIM") && more > 0:
			i++
			if problem = q.only(ErrReadClaim); problem == "" {
				problem = q.parseIdle(args[i])
			}
		default:
			problem = exec.ErrSyntax
		}
		if problem != "" {
			return q, problem
		}
	}
	return q, exec.ErrSyntax
}

// only returns a problem unless the command is XREADGROUP.
func (q *readArgs) only(problem string) string {
	if q.grouped {
		return ""
	}
	return problem
}

// parseCount parses how many entries are wanted: all, if it is not positive.
func (q *readArgs) parseCount(arg []byte) (problem string) {
	n, problem := parseCount(arg)
	if q.count = int(n); n <= 0 {
		q.count = math.MaxInt
	}
	return problem
}

func (q *readArgs) parseIdle(arg []byte) (problem string) {
	var ok bool
	switch q.minIdle, ok = resp.ParseInt(arg); {
	case !ok:
		return ErrMinIdle
	case q.minIdle < 0:
		return ErrMinIdleLow
	}
	return ""
}

// divide divides what stands from an argument on into keys and IDs.
func (q *readArgs) divide(args [][]byte, first int) (problem string) {
	n := (len(args) - first) / 2
	switch {
	case 2*n < len(args)-first && q.grouped:
		return errReadXReadGroup
	case 2*n < len(args)-first:
		return errReadXRead
	case q.grouped && q.group == nil:
		return ErrGroupNeeded
	}
	q.firstID = first + n
	q.keys, q.ids = args[first:q.firstID], args[q.firstID:]
	return ""
}

// isAll reports whether an ID is that character.
func isAll(id []byte, c byte) bool { return len(id) == 1 && id[0] == c }
