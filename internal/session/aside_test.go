package session

import (
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
)

// TestBlockedClients checks that a waiting connection counts once, and no longer after it has
// closed.
func TestBlockedClients(t *testing.T) {
	s := testServer("")
	f := func(want int64) {
		t.Helper()
		if got := s.Blocked(); got != want {
			t.Errorf("%d connections are blocked, want %d", got, want)
		}
	}
	a, b := s.NewState("", "", 0), s.NewState("", "", 0)
	f(0)
	a.SetBlocked(true)
	a.SetBlocked(true)
	b.SetBlocked(true)
	f(2)
	a.SetBlocked(false)
	b.Leave()
	b.Leave()
	f(0)
}

// TestWaiting checks that a wait ends once, by its own reply or by another one, and that the end of
// a pause does not end it.
func TestWaiting(t *testing.T) {
	st := testServer("").NewState("", "", 0)
	stopped := 0
	begin := func() {
		reply := []byte(":1")
		st.Waiting = Later(reply, func() { stopped++ })
		st.SetBlocked(true)
		reply[1] = 'x'
	}
	f := func(reply []byte, want string) {
		t.Helper()
		stopped = 0
		begin()
		answer, ended := st.EndWaiting(reply)
		if got := string(answer); got != want || !ended || stopped != 1 || st.Waiting != nil {
			t.Errorf("ended by %q: %q, stopped %d times, want %q and once", reply, got, stopped, want)
		}
		st.SetBlocked(false)
	}
	f(nil, ":1")
	f([]byte("-UNBLOCKED"), "-UNBLOCKED")
	f([]byte{}, "")
	begin()
	if st.SetPaused(true) || st.SetPaused(false) {
		t.Error("the end of a pause ends what does not wait for it")
	}
	st.Leave()
	if st.Waiting != nil || stopped != 2 {
		t.Errorf("stopped %d times when the client left, want once more than 1", stopped)
	}
	st.SetPaused(true)
	st.SetBlocked(true)
	if !st.SetPaused(false) {
		t.Error("the end of a pause does not end what waits for it")
	}
}

func TestPauseLeft(t *testing.T) {
	f := func(until, now, want time.Duration) {
		t.Helper()
		s := testServer("")
		s.pause.extend(0, until, true)
		if got := s.PauseLeft(now); got != want {
			t.Errorf("a pause until %v, at %v: %v left, want %v", until, now, got, want)
		}
	}
	f(100, 40, 60)
	f(100, 100, 0)
	f(maxPause, 300*24*time.Hour, time.Hour)
	if s := testServer(""); s.PauseLeft(time.Hour) > 0 {
		t.Error("clients are paused from the start")
	}
}

func TestParseWait(t *testing.T) {
	f := func(request string, wantReplicas int64, wantLimit time.Duration, wantRefusal string) {
		t.Helper()
		replicas, limit, refusal := ParseWait(conversation.Words(t, request))
		if refusal != wantRefusal || refusal == "" && (replicas != wantReplicas || limit != wantLimit) {
			t.Errorf("%s: %d, %v, %q", request, replicas, limit, refusal)
		}
	}
	f("WAIT 2 1500", 2, 1500*time.Millisecond, "")
	f("WAIT -1 0", -1, 0, "")
	f("WAIT 1 9223372036854775807", 1, maxDelay, "")
	f("WAIT x 0", 0, 0, command.ErrNotInteger)
	f("WAIT 1 x", 0, 0, errTimeout)
	f("WAIT 1 -1", 0, 0, errTimeoutLow)
}
