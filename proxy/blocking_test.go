package proxy

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/session"
)

// TestUnblockedWithoutMemory: who cannot wait since there is no memory for it reads that. A fault that there
// was is that it read that it had disconnected.
func TestUnblockedWithoutMemory(t *testing.T) {
	for _, woken := range []string{"", "*-1\r\n"} {
		s := &client{blocking: true, waits: 3, state: new(session.State)}
		want := string(outOfMemory)
		if woken != "" {
			s.woken, want = []byte(woken), woken
		}
		if got := string(s.unblocked(3, canceled)); got != want {
			t.Errorf("the client reads %q, not %q", got, want)
		}
	}
}
