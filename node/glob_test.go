package node

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestMatchGlob(t *testing.T) {
	f := func(pattern, s string, want bool) {
		t.Helper()
		if got := matchGlob([]byte(pattern), []byte(s)); got != want {
			t.Errorf("matchGlob(%q, %q) = %v, want %v", pattern, s, got, want)
		}
	}
	f("", "", true)
	f("", "a", false)
	f("*", "", true)
	f("*", "anything", true)
	f("***", "", true)
	f("a*", "a", true)
	f("a*c", "abc", true)
	f("a*c", "abcd", false)
	f("*a*b", "xxaxxab", true)
	f("?", "", false)
	f("?", "\x00", true)
	f("h?llo", "hello", true)
	f("h[ae]llo", "hallo", true)
	f("h[ae]llo", "hillo", false)
	f("h[^e]llo", "hello", false)
	f("h[^e]llo", "hbllo", true)
	f("[a-c]", "b", true)
	f("[c-a]", "b", true)
	f("[a-]", "-", false) // a range from a to ], as in Redis
	f("[a-]", "^", true)
	f("[", "[", false) // a class that is never closed and holds nothing
	f("[ab", "b", true)
	f("[]", "]", false)
	f(`[\]]`, "]", true)
	f(`\*`, "*", true)
	f(`\*`, "a", false)
	f(`a\`, `a\`, true)
	f("[^", "x", true)
	f("a[bc]*d", "abxxd", true)
	f("*ab*abc", "abab", false)
	f("*ab*abc", "ababc", true)
	f("*ab*ab", "ab", false)
	f("*aab", "aaab", true)
	f("*ab?*", "xaab", false)
	f("*ab?*", "xaabc", true)
	f(`*a\*`, "aa*", true)
	f("a*b*", "ab", true)
	f("a*b*c", "ab", false)
}

// TestMatchGlobHostile runs the pattern with which Redis's recursive matcher
// was held up for minutes, and one that makes every place of a long key look right.
func TestMatchGlobHostile(t *testing.T) {
	f := func(pattern, s string) {
		t.Helper()
		begun := time.Now()
		for range 20 {
			if matchGlob([]byte(pattern), []byte(s)) {
				t.Fatal("hostile pattern matched")
			}
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("hostile pattern took %v, want well under a second", took)
		}
	}
	f(strings.Repeat("*a", 40)+"b", strings.Repeat("a", 4096))
	f("*"+strings.Repeat("a", 30000)+"b", strings.Repeat("a", 65000)) // 20 billion comparisons
	f("*"+strings.Repeat("a", 30000)+"b*", strings.Repeat("a", 65000))
}

// TestCostlyPatterns: what is costly to match counts as more than one key, so that no loop is held up: SCAN ends early, and
// goes on.
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
