package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosChannelsNotice checks what a listener notices.
func TestChaosChannelsNotice(t *testing.T) {
	x := &Rig{T: t, C: &harness.Cluster{}, Pulse: newPulse(), tolerated: map[string]int{}}
	t.Cleanup(x.Pulse.close)
	g := &hearing{x: x, names: []string{"a", "b"}, said: map[message]*saying{}, next: map[message]int64{}}
	x.hearing = g
	session := func(name string) *Session { return &Session{X: x, name: name} }
	a := &listener{Session: session("a"), g: g, since: time.Now().Add(-time.Second), last: map[message]int64{}}
	b := &listener{Session: session("b"), g: g, since: time.Now().Add(-time.Second), last: map[message]int64{}}
	s := session("speaker")
	for range 4 {
		g.publish(s, 1, "channel:0")
	}
	for _, n := range []int64{7, 8} {
		g.change(s, 1, "set", n)
		g.change(s, 1, "del", n)
	}
	for i, judge := range s.Judges {
		judge([]byte([]string{":2\r\n", ":2\r\n", ":2\r\n", ":1\r\n", "+OK\r\n", ":1\r\n", "+OK\r\n", ":0\r\n"}[i]))
	}
	violations := 0
	found := func(want string) {
		t.Helper()
		x.Mu.Lock()
		defer x.Mu.Unlock()
		if got := strings.Join(x.violations[violations:], "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
		violations = len(x.violations)
	}
	found("counts 1 subscribers")
	hear := func(l *listener, want string, parts ...string) {
		t.Helper()
		frame := resp.AppendArray(nil, len(parts))
		for _, p := range parts {
			frame = resp.AppendBulkString(frame, p)
		}
		l.judge(frame)
		found(want)
	}
	for n := range 3 {
		hear(a, "", "message", "channel:0", fmt.Sprintf("0 1 %d", n+1))
	}
	hear(a, "heard behind 3", "message", "channel:0", "0 1 3")
	hear(a, "", "message", "channel:0", "9 1 3") // of another time
	hear(a, "never said", "message", "channel:0", "0 1 5")
	hear(a, "never said", "message", "channel:0", "other")
	hear(b, "", "message", "channel:0", "0 1 2")
	hear(b, "heard behind 2", "message", "channel:0", "0 1 1")
	hear(a, "", "pmessage", notePattern, noteChannel+"0:1:7", "set")
	hear(a, "", "pmessage", notePattern, noteChannel+"0:1:7", "del")
	hear(a, "twice", "pmessage", notePattern, noteChannel+"0:1:7", "del")
	hear(b, "too early", "pmessage", notePattern, noteChannel+"0:1:7", "del")
	hear(a, "never said", "pmessage", notePattern, noteChannel+"0:1:7", "expired")
	g.expire(s, 1, 12)
	g.expire(s, 1, 16)
	s.Judges[len(s.Judges)-2]([]byte("+OK\r\n"))
	s.Judges[len(s.Judges)-1]([]byte("-TRYAGAIN\r\n"))
	hear(a, "too early", "pmessage", notePattern, noteChannel+"0:1:12", "expired")
	hear(a, "", "pmessage", notePattern, noteChannel+"0:1:12", "set")
	hear(a, "", "pmessage", notePattern, noteChannel+"0:1:12", "expire")
	hear(a, "twice", "pmessage", notePattern, noteChannel+"0:1:12", "expired")
	for _, event := range []string{"set", "expire", "expired"} {
		hear(b, "", "pmessage", notePattern, noteChannel+"0:1:12", event)
	}
	x.judgeChannels()
	x.Mu.Lock()
	defer x.Mu.Unlock()
	lost := strings.Join(x.violations[violations:], "; ")
	for _, want := range []string{
		"a: {speaker:1 channel:channel:0 n:4}", "b: {speaker:1 channel:channel:0 n:3}", "b: {speaker:1 channel:channel:0 n:4}",
		"a: {speaker:1 channel:set n:8}", "b: {speaker:1 channel:set n:7}", "b: {speaker:1 channel:set n:8}",
	} {
		if !strings.Contains(lost, want) {
			t.Errorf("found %q, want %q", lost, want)
		}
	}
	if len(x.violations)-violations != 6 {
		t.Errorf("found %q", lost)
	}
}
