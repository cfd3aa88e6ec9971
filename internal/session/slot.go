package session

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/lobby"
)

// slotSilence is how long a client in the reserved slot may be silent.
const slotSilence = 10 * time.Second

// slot is the place for one client more than there may be: somebody who works on this machine can
// look at a server that is full of clients. Like others, that client has to authenticate. Until it
// has, another one may take the slot over.
type slot struct {
	holder   atomic.Pointer[State] // nil: free
	visitors *lobby.Lobby          // the holder, while it has to authenticate
}

// Admit gives a new connection its place, and a limited time to authenticate if the server has
// passwords. It reports false if there is no place. full says that there may be no more clients: then
// the connection may take the reserved slot, or the place of a client that is about to authenticate.
// turnOut is as for lobby.Enter: it must make the connection close.
func (s *Server) Admit(st *State, from netip.Addr, full bool, turnOut func()) bool {
	local := from.Unmap().IsLoopback()
	switch {
	case !full:
	case local && s.slot.take(st, nil):
		s.visit(st, from, turnOut)
		return true
	case s.lobby.TurnOut():
	case local && s.slot.visitors.Len() > 0 && s.slot.take(st, s.slot.holder.Load()):
		s.visit(st, from, turnOut)
		return true
	default:
		return false
	}
	if s.passwords.Needed() {
		st.EnterLobby(s.lobby, from, turnOut)
	}
	return true
}

// take gives the slot to st, if it is still that of before.
func (sl *slot) take(st, before *State) bool { return sl.holder.CompareAndSwap(before, st) }

// visit makes the new holder of the slot authenticate. It turns out the one before.
func (s *Server) visit(st *State, from netip.Addr, turnOut func()) {
	if s.passwords.Needed() {
		st.EnterLobby(s.slot.visitors, from, turnOut)
	}
}

// LeaveSlot ends the connection's use of the reserved slot, if it has it: it closes, has got an
// ordinary place, or is no client.
func (st *State) LeaveSlot() { st.server.slot.holder.CompareAndSwap(st, nil) }

// KeepsSlot reports whether the connection may stay, as far as the reserved slot is concerned. full
// says that there are more clients than there may be. Call it about once a second.
func (st *State) KeepsSlot(full bool, now time.Duration) bool {
	if st.server.slot.holder.Load() != st {
		return true
	}
	if !full {
		st.LeaveSlot()
	}
	return !full || now-st.LastUsed <= slotSilence
}
