package glob

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func match(t *testing.T, pattern, s string) bool {
	t.Helper()
	p, err := Compile([]byte(pattern))
	if err != nil {
		t.Fatal(err)
	}
	return p.Match([]byte(s))
}

func TestMatch(t *testing.T) {
	f := func(pattern, s string, want bool) {
		t.Helper()
		if got := match(t, pattern, s); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, s, got, want)
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

// slowMatch is what Match does, as simply as possible.
func slowMatch(pattern, s []byte) bool {
	reached := map[int]bool{0: true} // places in the pattern
	skip := func() {
		for p := range pattern {
			if reached[p] && pattern[p] == '*' {
				reached[p+1] = true
			}
		}
	}
	for _, c := range s {
		skip()
		next := map[int]bool{}
		for p := range reached {
			if p == len(pattern) {
				continue
			}
			if pattern[p] == '*' {
				next[p] = true
			} else if n, ok := matchOne(pattern[p:], c); ok {
				next[p+n] = true
			}
		}
		reached = next
	}
	skip()
	return reached[len(pattern)]
}

// Random patterns, whose segments are of all kinds, match what they should.
func TestMatchRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	elements := []string{"a", "a", "b", "?", "?", "*", "[ab]", "[^a]", "[b-c]", `\*`, `\a`, "["}
	matched := 0
	for range 20_000 {
		pattern, key := "", ""
		for range rng.IntN(8) {
			pattern += strings.Repeat(elements[rng.IntN(len(elements)-rng.IntN(2))], 1+rng.IntN(3)*rng.IntN(12))
		}
		for range rng.IntN(80) {
			key += string("aaab*"[rng.IntN(5)])
		}
		p, err := Compile([]byte(pattern))
		if err != nil {
			continue
		}
		want := slowMatch([]byte(pattern), []byte(key))
		if got := p.Match([]byte(key)); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, key, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 500 {
		t.Errorf("only %d patterns matched", matched)
	}
}

func TestCompileRefuses(t *testing.T) {
	f := func(pattern string, want error) {
		t.Helper()
		if _, err := Compile([]byte(pattern)); err != want {
			t.Errorf("%.20q, of %d bytes: %v, want %v", pattern, len(pattern), err, want)
		}
	}
	f(strings.Repeat("a", maxPattern), nil)
	f(strings.Repeat("a", maxPattern+1), ErrPattern)
	f("*"+strings.Repeat("?", maxRun)+"*", nil)
	f("*"+strings.Repeat("?", maxRun+1)+"*", ErrPattern)
	f("*"+strings.Repeat("a", maxRun+1)+"*", nil)
	f("*"+strings.Repeat("?", maxRun+1), nil) // at the end of a key
}

// No pattern makes a key cost much: neither one that kept Redis's recursive matcher busy for minutes,
// nor those that seem to match at every position of a long key.
func TestHostilePatterns(t *testing.T) {
	f := func(pattern string, size int) {
		t.Helper()
		p, err := Compile([]byte(pattern))
		if err != nil {
			t.Fatal(err)
		}
		key := []byte(strings.Repeat("a", size))
		begun := time.Now()
		for range 20 {
			if p.Match(key) {
				t.Fatal("hostile pattern matched")
			}
		}
		if took := time.Since(begun); took > time.Second { // 20 ms on an idle machine
			t.Errorf("hostile pattern took %v", took)
		}
	}
	f(strings.Repeat("*a", 40)+"b", 65000)
	f("*"+strings.Repeat("a", 4000)+"b", 65000)
	f("*"+strings.Repeat("a", 4000)+"b*", 65000)
	f("*"+strings.Repeat("?", 255)+"b*", 65000)
	f("*"+strings.Repeat("[a-a]", 255)+"b*", 65000)
	f("*[^b"+strings.Repeat("c", 4000)+"]b*", 65000)
	f(strings.Repeat("*"+strings.Repeat("?", 15)+"b", 200)+"*", 65000)
}

func BenchmarkMatch(b *testing.B) {
	key := []byte("tenant:0017:session:5f0c1e2a:name")
	for _, pattern := range []string{"tenant:*", "*:name", "*session:*", "*[0-9]:session*", "*:" + strings.Repeat("[0-9a-f]", 20) + ":*"} {
		b.Run(pattern, func(b *testing.B) {
			p, err := Compile([]byte(pattern))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				p.Match(key)
			}
		})
	}
}
