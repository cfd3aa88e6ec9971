package session

import (
	"net/netip"
	"sync"
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
	holder   atomic.Pointer[State] // nil: free. Taken with mu held
	visitors *lobby.Lobby          // the holder, while it has to authenticate

	mu    sync.Mutex
	guest *lobby.Guest // the last holder's stay among the visitors; nil: it had no need to authenticate
}

// Admit gives a new connection its place, and a limited time to authenticate if the server has
// passwords. It reports false if there is no place. full says that there may be no more clients: then
// the connection may take the reserved slot, or the place of a client that is about to authenticate.
// turnOut is as for lobby.Enter: it must make the connection close.
func (s *Server) Admit(st *State, from netip.Addr, full bool, turnOut func()) bool {
	local := from.Unmap().IsLoopback()
	switch {
	case !full:
	case local && s.takeSlot(st, from, turnOut, false):
		return true
	case s.lobby.TurnOut():
	case local && s.takeSlot(st, from, turnOut, true):
		return true
	default:
		return false
	}
	if s.passwords.Needed() {
		st.EnterLobby(s.lobby, from, turnOut)
	}
	return true
}

// takeSlot gives the slot to st, which has to authenticate, and reports whether it does: if the
// slot is free or, with over, if its holder has not authenticated, and is turned out. The lobby
// decides whether a holder authenticates before it is turned out, or is turned out before.
func (s *Server) takeSlot(st *State, from netip.Addr, turnOut func(), over bool) bool {
	sl := &s.slot
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.holder.Load() != nil && (!over || !sl.guest.TurnOut()) {
		return false
	}
	sl.holder.Store(st) // meanwhile the holder can only have left
	if sl.guest = nil; s.passwords.Needed() {
		st.EnterLobby(sl.visitors, from, turnOut)
		sl.guest = st.guest
	}
	return true
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
