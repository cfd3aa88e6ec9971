package session

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
)

// TestPausesAddUp checks that several pauses together last as long as the longest and are as strict
// as the strictest.
func TestPausesAddUp(t *testing.T) {
	var p pause
	f := func(now, until time.Duration, all bool, wantUntil time.Duration, wantAll bool) {
		t.Helper()
		p.extend(now, until, all)
		if p.until != wantUntil || p.all != wantAll {
			t.Errorf("until %d, all %v, want %d, %v", p.until, p.all, wantUntil, wantAll)
		}
	}
	f(0, 100, false, 100, false)
	f(10, 50, true, 100, true)
	f(20, 200, false, 200, true)
	f(200, 210, false, 210, false)
}

// TestWallClockSteps: a step of the system's clock changes no duration, neither that of a pause nor
// a client's age.
func TestWallClockSteps(t *testing.T) {
	wall, clock := time.Unix(1_700_000_000, 0), 5*time.Second
	s := NewServer(Options{
		Now:   func() time.Time { return wall },
		Clock: func() time.Duration { return clock },
	})
	e := &ourEnd{server: s}
	e.Connect(t)
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
		wall, clock = wall.Add(step), clock+time.Second
		e.Talk(t, conversation.Words(t, "CLIENT PAUSE 100"), false)
		if left := s.PauseLeft(clock); left != 100*time.Millisecond {
			t.Errorf("the clock steps by %v: CLIENT PAUSE 100 pauses for %v", step, left)
		}
	}
	reply, _ := e.Talk(t, conversation.Words(t, "CLIENT INFO"), false)
	if !strings.Contains(string(reply), " age=2 idle=2 ") {
		t.Errorf("after 2 s: %q", reply)
	}
}
