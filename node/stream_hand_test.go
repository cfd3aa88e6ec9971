package node

import (
	"context"
	"math"
	"testing"
	"time"
)

// Who waits for acknowledgements does not wait for what an heir refuses; who hands over does.
func TestFlushDoesNotWaitForHandOvers(t *testing.T) {
	a := startNode(t)
	b, copies := startReceiver(t)
	s := a.sender(memberOf(b))
	syncAll(s)
	settle(t, s)
	deny := func(deny bool) {
		copies.mu.Lock()
		defer copies.mu.Unlock()
		copies.deny = deny
	}
	deny(true)
	s.hand(7, 77, true)
	eventually(t, "it is refused", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		f := s.fed[7]
		if f == nil || f.tries == 0 {
			return false
		}
		f.tries = math.MinInt // it is not given up
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.flush(ctx); err != nil {
		t.Errorf("what is refused holds up others: %v", err)
	}
	moment, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.flushHanded(moment); err == nil {
		t.Error("what is refused counts as handed over")
	}
	deny(false)
	if err := s.flushHanded(ctx); err != nil {
		t.Error(err)
	}
	if kind, arg := copies.mark(7); kind != markHanded || arg != 77 {
		t.Errorf("the last mark is %d %d, want that it is handed over, 77", kind, arg)
	}
}
