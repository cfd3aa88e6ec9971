package cluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestMutedMonitor checks that CLIENT REPLY OFF and SKIP also hide the lines of MONITOR.
func TestMutedMonitor(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		w, other, m := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
		// This monitor is on the same loop: if it has seen a command, the muted one has been passed
		// over.
		other.Want("MONITOR", "OK")
		m.Send([]byte("CLIENT REPLY OFF\r\nMONITOR\r\n"))
		harness.Eventually(t, harness.ReadyTimeout, "two clients monitor", func() bool {
			return bytes.Count(w.Do("CLIENT LIST"), []byte(" flags=O ")) == 2
		})
		w.Want("SET a 1", "OK")
		shownUntil(t, other, `"SET" "a" "1"`)
		m.Send([]byte("CLIENT REPLY ON\r\n"))
		if got := shownUntil(t, m, `"CLIENT" "REPLY" "ON"`); len(got) != 1 || got[0] != "+OK" {
			t.Fatalf("CLIENT REPLY OFF, another's SET, CLIENT REPLY ON: %q", got)
		}
		m.Send([]byte("CLIENT REPLY SKIP\r\n"))
		shownUntil(t, other, `"CLIENT" "REPLY" "SKIP"`)
		w.Want("SET a 2", "OK")
		shownUntil(t, other, `"SET" "a" "2"`)
		m.Send([]byte("PING\r\nECHO x\r\n")) // PING gets no reply
		shownUntil(t, other, `"ECHO" "x"`)
		w.Want("SET a 3", "OK")
		if got := strings.Join(shownUntil(t, m, `"SET" "a" "3"`), " "); strings.Contains(got, `"SET"`) || !strings.Contains(got, "$1 x") {
			t.Errorf("CLIENT REPLY SKIP, another's SET, PING, ECHO: %q", got)
		}
	}, "--loops=1")
}

// shownUntil returns what a client reads before a line of MONITOR, without times and addresses.
func shownUntil(t *testing.T, w *harness.Wire, last string) (before []string) {
	t.Helper()
	for {
		got := strings.ReplaceAll(strings.TrimSuffix(string(w.Next()), "\r\n"), "\r\n", " ")
		if got == "" {
			t.Fatalf("the connection is closed before %s, behind %q", last, before)
		}
		if _, words, ok := strings.Cut(got, "] "); ok {
			got = words
		}
		if got == last {
			return before
		}
		before = append(before, got)
	}
}
