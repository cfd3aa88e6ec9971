package node

import "testing"

// forOneClient skips a test with one client, whose requests follow one another, if every access to
// memory takes ten times as long: the race detector has nothing to find there. Those that change
// values at random also run with the build tag checked alone (Makefile, checked).
func forOneClient(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("one client: the race detector has nothing to find")
	}
}
