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

// AppendExec appends the beginning of EXEC. watched times AppendWatched and commands times
// AppendQueued follow.
func AppendExec(dst []byte, slot uint16, watched, commands int) []byte {
	dst = AppendVerb(dst, VerbExec, 2+2*watched+commands)
	return appendInt(appendUint(dst, uint64(slot)), int64(watched))
}

// AppendWatched appends a key and the version that WATCH gave it.
func AppendWatched(dst, key, version []byte) []byte {
	return resp.AppendBulk(resp.AppendBulk(dst, key), version)
}

// AppendQueued appends a command.
func AppendQueued(dst []byte, args ...[]byte) []byte {
	dst = AppendQueuedHeader(dst, args...)
	for _, arg := range args {
		dst = resp.AppendBulk(dst, arg)
	}
	return AppendQueuedEnd(dst)
}

// AppendQueuedHeader appends the beginning of a command. Its arguments follow, as bulk strings, and
// AppendQueuedEnd.
func AppendQueuedHeader(dst []byte, args ...[]byte) []byte {
	var header [32]byte
	size := len(resp.AppendArray(header[:0], len(args)))
	for _, arg := range args {
		size += len(resp.AppendBulkHeader(header[:0], len(arg))) + len(arg) + len("\r\n")
	}
	return resp.AppendArray(resp.AppendBulkHeader(dst, size), len(args))
}

// AppendQueuedEnd appends the end of a command.
func AppendQueuedEnd(dst []byte) []byte { return append(dst, "\r\n"...) }

// ParseExec reads the arguments of EXEC. watched are keys and versions in turn, requests are
// encoded; both are views.
func ParseExec(args [][]byte) (slot uint16, watched, requests [][]byte, ok bool) {
	s, ok1 := resp.ParseInt(args[0])
	n, ok2 := resp.ParseInt(args[1])
	rest := args[2:]
	if !ok1 || !ok2 || s < 0 || s >= ring.Slots || n < 0 || n > int64(len(rest)/2) {
		return 0, nil, nil, false
	}
	return uint16(s), rest[:2*n], rest[2*n:], true
}
