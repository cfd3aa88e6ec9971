package session

import (
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A handler that returns ActionDelay has appended the reply that the command gets in the end, and set State.Delay. The caller
// sends it that much later; until then the connection is Blocked and executes nothing, and other connections go on.

const (
	maxDelay = 365 * 24 * time.Hour // so that sums of times do not overflow
	maxSleep = 300                  // seconds of DEBUG SLEEP
)

// debug answers DEBUG SLEEP seconds and HELP, if the process was started for tests. To sleep stalls the session alone: a
// loop that stood still would be that of other sessions and of pipes, and a node whose loops stand still is given up by the
// others. Who wants that sends the process SIGSTOP.
func (s *Server) debug(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	switch {
	case !s.o.Debug:
		return resp.AppendError(dst, errNoDebug), ActionNone
	case equalFold(args[1], "help") && len(args) == 2:
		return help(debugHelp)(s, st, args, dst)
	case !equalFold(args[1], "sleep") || len(args) != 3:
		return resp.AppendError(dst, wrongSubArgs(args)), ActionNone
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(args[2])), 64)
	switch {
	case seconds > maxSleep:
		return resp.AppendError(dst, errSleepLong), ActionNone
	case err != nil || !(seconds > 0): // as in Redis, what is no number is no time
		return appendOK(dst), ActionNone
	}
	st.Delay = time.Duration(seconds * float64(time.Second))
	return appendOK(dst), ActionDelay
}

// clientUnblock answers CLIENT UNBLOCK id [TIMEOUT | ERROR]; to find who waits is the caller's part.
func clientUnblock(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	if len(args) > 4 {
		return resp.AppendError(dst, wrongSubArgs(args)), ActionNone
	}
	if len(args) == 4 && !equalFold(args[3], "timeout") && !equalFold(args[3], "error") {
		return resp.AppendError(dst, errUnblock), ActionNone
	}
	if _, ok := resp.ParseInt(args[2]); !ok {
		return resp.AppendError(dst, errNotInteger), ActionNone
	}
	return dst, ActionClientUnblock
}

// UnblockOf reads a CLIENT UNBLOCK for which Do returned ActionClientUnblock: whose WAIT is to end, and by which reply, nil for
// the one that the time would bring. The answer is how many were found, 0 or 1.
func UnblockOf(args [][]byte) (id int64, reply []byte) {
	id, _ = resp.ParseInt(args[2])
	if len(args) == 4 && equalFold(args[3], "error") {
		reply = resp.AppendError(nil, errUnblocked)
	}
	return id, reply
}
