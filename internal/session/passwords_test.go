package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPasswordsTurn: a password that was replaced is accepted for another minute, and whoever is
// authenticated stays.
func TestPasswordsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords("old")
		s := NewServer(Options{Passwords: p})
		early := connected(t, s)
		try := func(password, want string) {
			t.Helper()
			if got := connected(t, s).say(t, "AUTH "+password)[:3]; got != want {
				t.Errorf("AUTH %s: %s, want %s", password, got, want)
			}
		}
		early.say(t, "AUTH old")
		try("new", "-WR")
		p.Set([]string{"new", "newer"})
		try("old", "+OK")
		try("new", "+OK")
		try("newer", "+OK")
		time.Sleep(passwordGrace - time.Second)
		try("old", "+OK")
		time.Sleep(time.Second)
		try("old", "-WR")
		try("new", "+OK")
		if got := early.say(t, "PING"); got != "+PONG\r\n" {
			t.Errorf("a client that had authenticated: %q", got)
		}
	})
}

func TestNoPasswords(t *testing.T) {
	for _, p := range []*Passwords{nil, {}, NewPasswords(), NewPasswords("")} {
		if p.Needed() || len(p.hashes()) > 0 {
			t.Error("no password is one")
		}
	}
}
