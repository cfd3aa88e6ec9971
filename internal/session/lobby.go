package session

import (
	"net/netip"
	"time"

	"github.com/dunlin-cache/dunlin/internal/lobby"
)

const (
	// authTime is how long a client may take to authenticate.
	authTime = 10 * time.Second
	// maxRefusals is how many commands in a row a client may send without authenticating. Their
	// refusals take less than 16 KiB.
	maxRefusals = 100
	// leastShare is how many clients of one source may be about to authenticate even if there may be
	// few clients.
	leastShare = 64
)

// newLobby returns the lobby of a server for so many clients: at most half of them may be about to
// authenticate, a quarter if they come from one source.
func newLobby(maxClients int) *lobby.Lobby {
	return lobby.New(max(2*leastShare, maxClients/2), max(leastShare, maxClients/4))
}

// EnterLobby makes the connection a guest of a lobby, and of no other, until Proved.
func (st *State) EnterLobby(l *lobby.Lobby, from netip.Addr, turnOut func()) {
	st.guest.Leave()
	st.guest = l.Enter(from, turnOut)
}

// Proved ends the connection's stay in the lobby: it has proved who it is.
func (st *State) Proved() {
	st.guest.Leave()
	st.guest = nil
	st.refusals = 0
}

// IsGuest reports whether the connection is in a lobby, or was turned out of one, and has not proved
// who it is.
func (st *State) IsGuest() bool { return st.guest != nil }

// TurnOutLate turns out the clients whose time to authenticate is over. It is cheap.
func (s *Server) TurnOutLate() {
	s.lobby.Expire(authTime)
	s.slot.visitors.Expire(authTime)
}
