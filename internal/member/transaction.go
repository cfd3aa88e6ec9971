package member

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A proxy queues its clients' transactions and sends each to the owner of its slot as one request:
//
//	DUNLIN WATCH key…                                ──▶  a version for each
//	DUNLIN EXEC slot n (key version)×n request…      ──▶  what EXEC answers
//
// A request is a whole command, encoded as a client would send it. The node remembers nothing about
// watched keys: the proxy keeps their versions and sends them back with EXEC.
//
// The transaction begins in the database that EXEC has (database.go). A SELECT among its commands changes that for
// those behind it. Watched keys have a database each.

// AppendExec appends the beginning of EXEC. watched times AppendWatched and commands times
// AppendQueued follow.
func AppendExec(dst []byte, slot uint16, watched, commands int) []byte {
	dst = AppendVerb(dst, VerbExec, 2+2*watched+commands)
	return appendInt(appendUint(dst, uint64(slot)), int64(watched))
}

// AppendQueued appends a command.
func AppendQueued(dst []byte, args ...[]byte) []byte {
	length := 0
	for _, arg := range args {
		length += BulkSize(arg)
	}
	dst = AppendQueuedHeader(dst, len(args), length)
	for _, arg := range args {
		dst = resp.AppendBulk(dst, arg)
	}
	return AppendQueuedEnd(dst)
}

// AppendQueuedHeader appends the beginning of a command of some arguments, whose BulkSizes add up to
// length. They follow, as bulk strings, and AppendQueuedEnd.
func AppendQueuedHeader(dst []byte, args, length int) []byte {
	var header [32]byte
	length += len(resp.AppendArray(header[:0], args))
	return resp.AppendArray(resp.AppendBulkHeader(dst, length), args)
}

// BulkSize returns how many bytes an argument takes as a bulk string.
func BulkSize(arg []byte) int {
	var header [32]byte
	return len(resp.AppendBulkHeader(header[:0], len(arg))) + len(arg) + len("\r\n")
}

// AppendQueuedEnd appends the end of a command.
func AppendQueuedEnd(dst []byte) []byte { return append(dst, "\r\n"...) }

// ParseExec reads the arguments of EXEC. watched are keys and versions in turn, which CutWatched takes apart, requests
// are encoded; both are views.
func ParseExec(args [][]byte) (slot uint16, watched, requests [][]byte, ok bool) {
	s, ok1 := resp.ParseInt(args[0])
	n, ok2 := resp.ParseInt(args[1])
	rest := args[2:]
	if !ok1 || !ok2 || s < 0 || s >= ring.Slots || n < 0 || n > int64(len(rest)/2) {
		return 0, nil, nil, false
	}
	return uint16(s), rest[:2*n], rest[2*n:], true
}
