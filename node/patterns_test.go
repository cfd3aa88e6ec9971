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
	long := "{k}" + strings.Repeat("a", 1000)
	const keys = 100
	for i := range keys {
		c.want(fmt.Sprint("SET ", long, i, " x"), "OK")
	}
	cheap, costly := "{k}*[0-9]", "{k}*"+strings.Repeat("?", 990)+"[0-9]"
	calls := func(pattern string) (calls, found int) {
		for cursor := "0"; cursor != "0" || calls == 0; calls++ {
			lines := strings.Split(c.do("SCAN "+cursor+" COUNT 1000 MATCH "+pattern), "\n")
			fmt.Sscanf(lines[0], "1) %q", &cursor)
			found += strings.Count(strings.Join(lines, ""), long)
		}
		return calls, found
	}
	if calls, found := calls(cheap); calls != 1 || found != keys {
		t.Errorf("%d calls found %d keys with a cheap pattern, want 1 call, %d keys", calls, found, keys)
	}
	if calls, found := calls(costly); calls < keys/20 || found != keys {
		t.Errorf("%d calls found %d keys with a costly pattern, want %d calls, %d keys", calls, found, keys/20, keys)
	}
	if got := strings.Count(c.do("KEYS "+costly), long); got != keys {
		t.Errorf("KEYS finds %d", got)
	}
}
