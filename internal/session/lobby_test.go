package session

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestTimeToAuthenticate checks that a client has ten seconds, and that one that has authenticated
// or left is not turned out.
func TestTimeToAuthenticate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Passwords: NewPasswords("secret")})
		out := 0
		await := func() *State {
			st := s.NewState("", "", 0)
			s.Admit(st, netip.MustParseAddr("10.0.0.1"), false, func() { out++ })
			return st
		}
		await()
		in, gone := await(), await()
		s.auth(in, [][]byte{[]byte("AUTH"), []byte("secret")}, nil)
		gone.Leave()
		time.Sleep(authTime)
		s.TurnOutLate()
		if out != 0 {
			t.Error("turned out too early")
		}
		time.Sleep(time.Second)
		s.TurnOutLate()
		if out != 1 || s.lobby.TurnOut() {
			t.Errorf("%d were turned out, want 1", out)
		}
		open := NewServer(Options{})
		open.Admit(open.NewState("", "", 0), netip.Addr{}, false, func() {})
		if open.lobby.TurnOut() {
			t.Error("a client is turned out though it needs no password")
		}
	})
}
