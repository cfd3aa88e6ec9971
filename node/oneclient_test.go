package node

import "testing"

// forOneClient skips a test with one client, or several whose requests follow one another, or with
// Redis alone, if every access to memory takes ten times as long: the race detector has nothing to
// find there. Those that change many values run with the build tag checked alone (Makefile, checked).
func forOneClient(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("one client: the race detector has nothing to find")
	}
}
