package glob

import (
	"strings"
	"testing"
	"time"
)

func TestMatchGlob(t *testing.T) {
	f := func(pattern, s string, want bool) {
		t.Helper()
		if got := Match([]byte(pattern), []byte(s)); got != want {
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

// TestMatchGlobHostile runs a pattern that kept Redis's recursive matcher busy for minutes, and one
// that seems to match at every position of a long key.
func TestMatchGlobHostile(t *testing.T) {
	f := func(pattern, s string) {
		t.Helper()
		begun := time.Now()
		for range 20 {
			if Match([]byte(pattern), []byte(s)) {
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
