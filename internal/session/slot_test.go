package session

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestReservedSlot checks who gets the place over the limit, and for how long.
func TestReservedSlot(t *testing.T) {
	const local, other = "127.0.0.1", "10.0.0.1"
	s := NewServer(Options{})
	admit := func(from string, want bool) *State {
		t.Helper()
		st := s.NewState("", "", 0)
		if got := s.Admit(st, netip.MustParseAddr(from), true, func() { t.Error("turned out") }); got != want {
			t.Errorf("%s is admitted to a full server: %v, want %v", from, got, want)
		}
		return st
	}
	admit(other, false)
	first := admit("::1", true)
	admit(local, false)
	first.Leave()
	second := admit("::ffff:127.0.0.1", true)
	keeps := func(full bool, now time.Duration, want bool) {
		t.Helper()
		if got := second.KeepsSlot(full, now); got != want {
			t.Errorf("silent for %v, full %v: keeps the slot %v, want %v", now, full, got, want)
		}
	}
	keeps(true, slotSilence, true)
	keeps(true, slotSilence+1, false)
	keeps(false, slotSilence+1, true) // it has an ordinary place from now on
	keeps(true, slotSilence+1, true)
	admit(local, true)
}

// TestSlotIsKept checks that somebody else who has not authenticated does not cost the holder its
// slot.
func TestSlotIsKept(t *testing.T) {
	passwords := NewPasswords("secret")
	s := NewServer(Options{Passwords: passwords})
	var out []string
	admit := func(name string) bool {
		turnOut := func() { out = append(out, name) }
		return s.Admit(s.NewState("", "", 0), netip.MustParseAddr("127.0.0.1"), true, turnOut)
	}
	admit("a")
	passwords.Set(nil)
	if !admit("b") || len(out) != 1 || out[0] != "a" {
		t.Errorf("turned out %v, want a", out)
	}
	if admit("c") || len(out) != 1 {
		t.Error("whoever has no need to authenticate loses the slot")
	}
}

// TestReservedSlotWithPassword checks that whoever has not authenticated keeps nobody out of the
// slot, and loses it after ten seconds.
func TestReservedSlotWithPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Passwords: NewPasswords("secret")})
		var out []string
		admit := func(name string) *State {
			st := s.NewState("", "", 0)
			if !s.Admit(st, netip.MustParseAddr("127.0.0.1"), true, func() { out = append(out, name) }) {
				return nil
			}
			return st
		}
		admit("a")
		b := admit("b")
		if len(out) != 1 || out[0] != "a" {
			t.Fatalf("turned out %v, want a", out)
		}
		time.Sleep(authTime + 1)
		s.TurnOutLate()
		if len(out) != 2 {
			t.Fatal("who has not authenticated in time keeps the slot")
		}
		b.Leave()
		c := admit("c")
		s.auth(c, [][]byte{[]byte("AUTH"), []byte("secret")}, nil)
		if admit("d") != nil || len(out) != 2 {
			t.Error("who has authenticated loses the slot")
		}
	})
}
