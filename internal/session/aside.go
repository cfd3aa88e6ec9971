package session

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A connection that said CLIENT REPLY OFF or SKIP, or is paused or Blocked, takes a path of its
// own, so that it costs other connections nothing:
//
//	if st.Aside() {
//		wait, if st.Blocked or Holds: the same request comes again
//		st.Begin()          from here on the command takes the usual path
//		…                   execute it
//		drop the reply, if st.Muted()
//		st.End(true)
//	}

// muting is what CLIENT REPLY has asked for.
type muting uint8

const (
	muted     muting = 1 << iota // OFF: all replies
	mutedOnce                    // SKIP: that to the command at hand, or the next one between two commands
	mutedNext                    // SKIP is the command at hand
)

// Aside reports whether the next command must be treated as above.
func (st *State) Aside() bool { return (st.muting != 0 || st.paused || st.Blocked) && !st.begun }

// KeepBlocked is how many bytes more are read from a Blocked connection, so that it is noticed when
// its peer disconnects.
const KeepBlocked = 64 << 10

// SetBlocked says whether a command of the connection waits.
func (st *State) SetBlocked(blocked bool) {
	if blocked == st.Blocked {
		return
	}
	st.Blocked = blocked
	if blocked {
		st.server.blocked.Add(1)
	} else {
		st.server.blocked.Add(-1)
	}
	st.setApart()
}

// Begin begins a command of a connection that is Aside.
func (st *State) Begin() {
	st.begun = true
	st.setApart()
}

// Muted reports, after a command, whether its reply is to be dropped.
func (st *State) Muted() bool { return st.muting&(muted|mutedOnce) != 0 }

// Begun reports whether a command was begun and has not ended.
func (st *State) Begun() bool { return st.begun }

// End ends a command. done is false if it was not executed: it will begin again.
func (st *State) End(done bool) {
	st.begun = false
	if done {
		st.muting &^= mutedOnce
		if st.muting&mutedNext != 0 {
			st.muting = st.muting&^mutedNext | mutedOnce
		}
	}
	st.setApart()
}

// setApart is called after every change of what Apart depends on.
func (st *State) setApart() { st.Apart = st.Multi || st.Aside() }

// clientReply answers CLIENT REPLY ON|OFF|SKIP. It is refused in a transaction, where it
// would leave gaps in the reply of EXEC.
func clientReply(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	defer st.setApart()
	switch option := args[2]; {
	case command.EqualFold(option, "on"):
		st.muting &^= muted | mutedOnce
		return resp.AppendOK(dst), ActionNone
	case command.EqualFold(option, "off"):
		st.muting |= muted
	case !command.EqualFold(option, "skip"):
		return resp.AppendError(dst, command.ErrSyntax), ActionNone
	case st.muting&muted != 0: // it changes nothing
	case st.begun:
		st.muting |= mutedNext
	default:
		st.muting |= mutedOnce
	}
	return dst, ActionNone
}
