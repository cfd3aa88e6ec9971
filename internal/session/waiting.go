package session

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/about"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A handler that returns ActionDelay has appended the reply that the command gets in the end, and
// set State.Delay. The caller sends it that much later. WAIT is answered by the caller alone. Until
// then the connection is Blocked and executes nothing, and other connections go on.

// Waiting is a command that waits: for the time of its reply, or for what others do. Its connection
// is Blocked until it ends.
type Waiting struct {
	Reply func() []byte // what it is answered if it ends now
	Stop  func()        // nobody waits any more
}

// Later is a command that gets its reply, which is copied, when the timer that stop ends has run
// down.
func Later(reply []byte, stop func()) *Waiting {
	reply = bytes.Clone(reply)
	return &Waiting{Reply: func() []byte { return reply }, Stop: stop}
}

// EndWaiting ends what the connection waits for, and returns the answer: reply, or that of the
// moment if it is nil.
func (st *State) EndWaiting(reply []byte) []byte {
	w := st.Waiting
	st.Waiting = nil
	w.Stop()
	if reply == nil {
		reply = w.Reply()
	}
	return reply
}

// Leave ends what a connection waits for that is gone.
func (st *State) Leave() {
	if st.Waiting != nil {
		st.Waiting.Stop()
		st.Waiting = nil
	}
	st.SetBlocked(false)
}

const (
	maxDelay = 365 * 24 * time.Hour // so that sums of times do not overflow
	maxSleep = 300                  // seconds of DEBUG SLEEP
)

// debug answers DEBUG SLEEP seconds and HELP, if the process was started for tests. To sleep stalls
// the session alone: a loop that stood still would be that of other sessions and of pipes, and a
// node whose loops stand still is given up by the others. Who wants that sends the process SIGSTOP.
func (s *Server) debug(st *State, args [][]byte, dst []byte) ([]byte, Action) {
	switch {
	case !s.o.Debug:
		return resp.AppendError(dst, errNoDebug), ActionNone
	case command.EqualFold(args[1], "help") && len(args) == 2:
		return about.DebugHelp(dst, st.Version, args), ActionNone
	case !command.EqualFold(args[1], "sleep") || len(args) != 3:
		return resp.AppendError(dst, command.WrongSubArgs(args)), ActionNone
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(args[2])), 64)
	switch {
	case seconds > maxSleep:
		return resp.AppendError(dst, errSleepLong), ActionNone
	case err != nil || !(seconds > 0): // as in Redis, what is no number is no time
		return resp.AppendOK(dst), ActionNone
	}
	st.Delay = time.Duration(seconds * float64(time.Second))
	return resp.AppendOK(dst), ActionDelay
}

// clientUnblock answers CLIENT UNBLOCK id [TIMEOUT | ERROR]; to find who waits is the caller's
// part.
func clientUnblock(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	if len(args) > 4 {
		return resp.AppendError(dst, command.WrongSubArgs(args)), ActionNone
	}
	if len(args) == 4 && !command.EqualFold(args[3], "timeout") && !command.EqualFold(args[3], "error") {
		return resp.AppendError(dst, errUnblock), ActionNone
	}
	if _, ok := resp.ParseInt(args[2]); !ok {
		return resp.AppendError(dst, command.ErrNotInteger), ActionNone
	}
	return dst, ActionClientUnblock
}

// unblockedBy reports whether CLIENT UNBLOCK of a client's id ends what the connection waits for: a
// WAIT.
func (st *State) unblockedBy(id int64) bool {
	return int64(st.ID) == id && st.Waiting != nil && st.LastCmd == command.Wait
}

// unblockOf reads a CLIENT UNBLOCK for which Do returned ActionClientUnblock: whose WAIT is to end,
// and by which reply, nil for the one that the time would bring. The answer is how many were found,
// 0 or 1.
func unblockOf(args [][]byte) (id int64, reply []byte) {
	id, _ = resp.ParseInt(args[2])
	if len(args) == 4 && command.EqualFold(args[3], "error") {
		reply = resp.AppendError(nil, errUnblocked)
	}
	return id, reply
}

// ParseWait reads WAIT replicas milliseconds. limit is for how long it waits, 0 is for as long as
// the client is there. refusal is the text of an error, "" if there is none.
func ParseWait(args [][]byte) (replicas int64, limit time.Duration, refusal string) {
	replicas, ok := resp.ParseInt(args[1])
	if !ok {
		return 0, 0, command.ErrNotInteger
	}
	millis, refusal := timeoutArg(args[2])
	return replicas, time.Duration(min(millis, maxDelay.Milliseconds())) * time.Millisecond, refusal
}

// AppendWaitInExec answers WAIT within EXEC, where nothing waits, and so nothing has been
// acknowledged.
func AppendWaitInExec(dst []byte, args [][]byte) []byte {
	if _, _, refusal := ParseWait(args); refusal != "" {
		return resp.AppendError(dst, refusal)
	}
	return resp.AppendInt(dst, 0)
}
