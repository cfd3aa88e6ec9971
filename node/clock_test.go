package node

import "testing"

// TestClockMayStep: the clock may follow a step of the system's at once while nothing expires.
func TestClockMayStep(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	f := func(command, reply string, want bool) {
		t.Helper()
		if c.want(command, reply); n.nothingExpires() != want {
			t.Errorf("after %s the clock may step: %v, want %v", command, !want, want)
		}
	}
	f("SET k v", "OK", true)
	f("SET k v EX 1000", "OK", false)
	f("PERSIST k", "(integer) 1", true)
	f("EXPIREAT k 99999999999", "(integer) 1", false)
	f("DEL k", "(integer) 1", true)
}
