package session

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A connection that sent CLIENT REPLY OFF or SKIP, or is paused, Blocked or tracks, takes a path of its
// own, which costs other connections nothing:
//
//	if st.Aside() {
//		wait, if st.Blocked or Pauses: the same request comes again
//		st.Begin()          from here on the command takes the usual path
//		…                   execute it
//		drop the reply, if st.Muted()
//		st.End(true)
//	}

// muting is the set of replies that CLIENT REPLY suppresses.
type muting uint8

const (
	muted     muting = 1 << iota // OFF: all replies
	mutedOnce                    // SKIP: the reply of the present or else the next command
	mutedNext                    // the present command is SKIP
)

// Aside reports whether the next command must take the path above.
func (st *State) Aside() bool {
	return (st.muting != 0 || st.paused || st.Blocked || st.Tracking != nil) && !st.begun
}

// KeepBlocked is how many further bytes are read from a Blocked connection, so that the loop
// notices when its peer disconnects.
const KeepBlocked = 64 << 10

// SetBlocked records whether a command of the connection is waiting.
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

// Muted reports, after a command, whether the caller must drop its reply.
func (st *State) Muted() bool { return st.muting&(muted|mutedOnce) != 0 }

// Begun reports whether a command has begun and not ended.
func (st *State) Begun() bool { return st.begun }

// End ends a command. done is false if the command was not executed and will begin again.
func (st *State) End(done bool) {
	st.begun = false
	if done {
		st.muting &^= mutedOnce
		if st.muting&mutedNext != 0 {
			st.muting = st.muting&^mutedNext | mutedOnce
		}
		if st.Tracking != nil {
			st.endCaching()
		}
	}
	st.setApart()
}

// setApart updates Apart. Call it after every change of the fields on which Apart depends.
func (st *State) setApart() { st.Apart = st.Multi || st.Aside() || st.listensOnly() }

// clientReply answers CLIENT REPLY ON|OFF|SKIP. In a transaction it is refused, because it would
// leave gaps in the reply of EXEC.
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
