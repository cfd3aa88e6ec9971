package node

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
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
}

// TestMatchGlobHostile runs the pattern with which Redis's recursive matcher
// was held up for minutes.
func TestMatchGlobHostile(t *testing.T) {
	pattern := []byte(strings.Repeat("*a", 40) + "b")
	s := []byte(strings.Repeat("a", 4096))
	begun := time.Now()
	if matchGlob(pattern, s) {
		t.Error("hostile pattern matched")
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("hostile pattern took %v, want well under a second", took)
	}
}

// TestMatchGlobAsInRedis matches random patterns with random keys, as the KEYS of a real redis-server does.
func TestMatchGlobAsInRedis(t *testing.T) {
	real := dial(t, redistest.Start(t))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	word := func(alphabet string, most int) []byte {
		b := make([]byte, random.IntN(most))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		return b
	}
	var keys []string
	for range 300 {
		// None is empty: "**" matches nothing to Redis, though "*" and "a**" do.
		key := word("aabbcd]^-\\*?[", 7)
		if len(key) == 0 {
			continue
		}
		keys = append(keys, string(key))
		real.sendArgs([]byte("SET"), key, nil)
		real.next()
	}
	for range 3000 {
		pattern := word("aabbcd]^-\\**?[[[", 10)
		real.sendArgs([]byte("KEYS"), pattern)
		matching := map[string]bool{}
		for _, k := range elements(t, real.read()) {
			matching[k] = true
		}
		for _, k := range keys {
			if got := matchGlob(pattern, []byte(k)); got != matching[k] {
				t.Errorf("seed %d: matchGlob(%q, %q) = %v, not as in Redis", seed, pattern, k, got)
			}
		}
	}
}

// elements are those of an array of bulks.
func elements(t *testing.T, reply []byte) (all []string) {
	t.Helper()
	n, header, ok := resp.DecodeArray(reply)
	if !ok {
		t.Fatalf("no array: %q", reply)
	}
	var s resp.Scanner
	for rest := reply[header:]; len(all) < n; rest = rest[s.Len():] {
		s.Scan(rest)
		b, _ := resp.DecodeBulk(rest[:s.Len()])
		all = append(all, string(b))
	}
	return all
}
