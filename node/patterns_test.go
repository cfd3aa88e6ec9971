package node

import (
	"fmt"
	"strings"
	"testing"
)

// TestCostlyPatterns: what is costly to match counts as more than one key, so that no loop is held
// up: SCAN ends early, and goes on.
func TestCostlyPatterns(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	long := "{k}" + strings.Repeat("a", 30_000)
	const keys = 100
	for i := range keys {
		c.want(fmt.Sprint("SET ", long, i, " x"), "OK")
	}
	cheap, costly := "{k}b*", "{k}*a?b*"
	calls := func(pattern string) (calls int) {
		for cursor := "0"; cursor != "0" || calls == 0; calls++ {
			lines := strings.Split(c.do("SCAN "+cursor+" COUNT 1000 MATCH "+pattern), "\n")
			fmt.Sscanf(lines[0], "1) %q", &cursor)
		}
		return calls
	}
	if calls := calls(cheap); calls != 1 {
		t.Errorf("%d calls with a cheap pattern, want 1", calls)
	}
	if calls := calls(costly); calls < 2 {
		t.Errorf("%d calls with a costly pattern, want more", calls)
	}
	if got := strings.Count(c.do("KEYS {k}*a?*[0-9]"), long); got != keys {
		t.Errorf("KEYS finds %d", got)
	}
}

// TestPatternsAreBounded: patterns that would take long to match are refused at once.
func TestPatternsAreBounded(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("SET k x", "OK")
	for _, pattern := range []string{strings.Repeat("k", 5<<10), "*" + strings.Repeat("?", 300) + "*"} {
		for _, command := range []string{"KEYS ", "SCAN 0 MATCH "} {
			if got := c.do(command + pattern); !strings.Contains(got, "pattern is too long") {
				t.Errorf("%s%.10s… is answered %.100q", command, pattern, got)
			}
		}
	}
}

// TestScanIsBounded: one SCAN visits about maxScanCount keys, whatever its COUNT.
func TestScanIsBounded(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	const keys = 4000
	args := manyKeys("MSET", keys, func(int) []byte { return []byte("v") })
	args[1] = []byte("many:0")
	c.sendArgs(args...)
	if got := c.next(); got != "OK" {
		t.Fatalf("MSET answers %s", got)
	}
	cursor, seen := "0", 0
	for cursor != "0" || seen == 0 {
		reply := c.do("SCAN " + cursor + " COUNT 1000000")
		fmt.Sscanf(reply, "1) %q", &cursor)
		got := strings.Count(reply, "many:")
		if got > 1200 { // the last bucket is visited whole
			t.Fatalf("SCAN answers %d keys", got)
		}
		seen += got
	}
	if seen != keys {
		t.Errorf("SCAN answers %d keys in all, want %d", seen, keys)
	}
}
