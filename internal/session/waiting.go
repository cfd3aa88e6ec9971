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

// A handler that returns ActionDelay has appended the command's reply and set State.Delay. The
// caller sends the reply after that delay. WAIT is answered by the caller alone. Until then the
// connection is Blocked and executes nothing; other connections continue.

// Waiting is a command that waits for a time or for other members. Its connection is Blocked until
// the wait ends.
type Waiting struct {
	Reply func() []byte // returns the reply if the wait ends now
	Stop  func()        // called when nobody waits any more
	// Withdraw, unless it is nil, is called before: it reports false if the wait has ended with a reply
	// that is on its way. Then the wait ends in no other way.
	Withdraw func() bool
}

// Later returns a command that is answered with reply when a timer ends. It copies reply. stop
// stops the timer.
func Later(reply []byte, stop func()) *Waiting {
	reply = bytes.Clone(reply)
	return &Waiting{Reply: func() []byte { return reply }, Stop: stop}
}

// EndWaiting ends the wait of the connection and returns the answer: reply, or the result of
// Waiting.Reply if reply is nil. ended is false if another reply is on its way.
func (st *State) EndWaiting(reply []byte) (answer []byte, ended bool) {
	w := st.Waiting
	if !w.withdraw() {
		return nil, false
	}
	st.Waiting = nil
	w.Stop()
	if reply == nil {
		reply = w.Reply()
	}
	return reply, true
}

func (w *Waiting) withdraw() bool { return w.Withdraw == nil || w.Withdraw() }

// Leave ends the wait and the transaction of a connection whose client has disconnected, and gives up its place.
func (st *State) Leave() {
	st.EndTransaction()
	st.Proved()
	st.LeaveSlot()
	if st.Waiting != nil {
		if w := st.Waiting; w.withdraw() {
			w.Stop()
		}
		st.Waiting = nil
	}
	st.SetBlocked(false)
}

const (
	maxDelay = 365 * 24 * time.Hour // so that sums of times do not overflow
	maxSleep = 300                  // seconds of DEBUG SLEEP
)

// debug answers DEBUG SLEEP seconds and HELP if the process was started for tests. SLEEP stalls
// this connection alone: a loop serves other connections and pipes too, and the cluster gives up a
// node whose loops stand still. SIGSTOP stalls a whole process.
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
	case err != nil || !(seconds > 0): // as in Redis, a time that is no number counts as none
		return resp.AppendOK(dst), ActionNone
	}
	st.Delay = time.Duration(seconds * float64(time.Second))
	return resp.AppendOK(dst), ActionDelay
}

// clientUnblock checks CLIENT UNBLOCK id [TIMEOUT | ERROR]; the caller finds the client.
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

// unblockedBy reports whether CLIENT UNBLOCK id may end the wait of the connection: that of a blocking
// command.
func (st *State) unblockedBy(id int64) bool {
	c := command.ByID(st.LastCmd)
	return int64(st.ID) == id && st.Waiting != nil && c != nil && c.Flags&command.Blocking != 0
}

// unblockOf parses a CLIENT UNBLOCK for which Do returned ActionClientUnblock: the id of the
// client, and the reply that it gets, nil for the reply of a timeout.
func unblockOf(args [][]byte) (id int64, reply []byte) {
	id, _ = resp.ParseInt(args[2])
	if len(args) == 4 && command.EqualFold(args[3], "error") {
		reply = resp.AppendError(nil, errUnblocked)
	}
	return id, reply
}

// ParseWait parses WAIT replicas milliseconds. limit is the longest wait; 0 means as long as the
// client stays connected. refusal is the text of an error, or "".
func ParseWait(args [][]byte) (replicas int64, limit time.Duration, refusal string) {
	replicas, ok := resp.ParseInt(args[1])
	if !ok {
		return 0, 0, command.ErrNotInteger
	}
	millis, refusal := timeoutArg(args[2])
	return replicas, time.Duration(min(millis, maxDelay.Milliseconds())) * time.Millisecond, refusal
}

// AppendWaitInExec answers WAIT within EXEC, where nothing waits and so nothing has been
// acknowledged.
func AppendWaitInExec(dst []byte, args [][]byte) []byte {
	if _, _, refusal := ParseWait(args); refusal != "" {
		return resp.AppendError(dst, refusal)
	}
	return resp.AppendInt(dst, 0)
}

// waitAOF answers WAITAOF local replicas milliseconds: nothing is logged on a disk, here or elsewhere.
func waitAOF(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	local, ok := resp.ParseInt(args[1])
	replicas, isInt := resp.ParseInt(args[2])
	millis, refusal := timeoutArg(args[3])
	switch {
	case !ok:
		refusal = command.ErrNotInteger
	case local < 0 || local > 1:
		refusal = errLocalLogs
	case !isInt:
		refusal = command.ErrNotInteger
	case replicas < 0:
		refusal = errNotPositive
	case refusal == "" && local == 1:
		refusal = errNoLog
	}
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	dst = resp.AppendInt(resp.AppendInt(resp.AppendArray(dst, 2), 0), 0)
	if replicas == 0 || st.Executing {
		return dst, ActionNone
	}
	if st.Delay = time.Duration(min(millis, maxDelay.Milliseconds())) * time.Millisecond; millis == 0 {
		st.Delay = maxDelay
	}
	return dst, ActionDelay
}
