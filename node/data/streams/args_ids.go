package streams

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// idsArgs are the options of XDELEX and XACKDEL.
type idsArgs struct {
	refs refs
	ids  [][]byte
}

// parseIDs parses [KEEPREF | DELREF | ACKED] IDS numids id... .
func parseIDs(args [][]byte) (a idsArgs, problem string) {
	for len(args) > 0 {
		switch refs := parseRefs(args[0]); {
		case refs != 0 && a.refs == 0:
			a.refs = refs
			args = args[1:]
		case exec.Is(args[0], "IDS") && len(args) > 1:
			n, ok := resp.ParseInt(args[1])
			if !ok || n < 1 {
				return a, ErrNumIDs
			}
			if args = args[2:]; n > int64(len(args)) {
				return a, ErrNumIDsMatch
			}
			a.ids, args = args[:n], args[n:]
		default:
			return a, exec.ErrSyntax
		}
	}
	if a.ids == nil {
		return a, ErrNoIDs
	}
	if a.refs == 0 {
		a.refs = keepRef
	}
	return a, ""
}

// intOption parses an argument that is an integer, with an error text of its own.
func intOption(arg []byte, text string) (n int64, problem string) {
	n, ok := resp.ParseInt(arg)
	if !ok {
		problem = text
	}
	return n, problem
}
