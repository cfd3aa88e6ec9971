package session

import "testing"

// TestPausesAddUp checks that several pauses together last as long as the longest and are as strict
// as the strictest.
func TestPausesAddUp(t *testing.T) {
	var p pause
	f := func(now, until int64, all bool, wantUntil int64, wantAll bool) {
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
