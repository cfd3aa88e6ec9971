package exec

import (
	"strconv"
	"strings"
	"testing"
)

func TestCodeOf(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := codeOf(text); got != want {
			t.Errorf("%.40q: code %q, want %q", text, got, want)
		}
	}
	f("-ERR syntax error\r\n", "ERR")
	f("WRONGTYPE Operation against a key", "WRONGTYPE")
	f("-TRYAGAIN\r\n", "TRYAGAIN")
	f("MY_CODE", "MY_CODE")
	// What scripts return.
	f("", otherCode)
	f("-\r\n$5\r\n\r\n$5", otherCode)
	f("- text", otherCode)
	f("ERR: no", otherCode)
	f("a\nb", otherCode)
	f(strings.Repeat("A", maxCode), strings.Repeat("A", maxCode))
	f(strings.Repeat("A", maxCode+1), otherCode)
	f(strings.Repeat("A", 1<<20)+" text", otherCode)
}

// TestCodesAreBounded: scripts that return ever new codes leave those that are counted, and add up to one.
func TestCodesAreBounded(t *testing.T) {
	var c Counters
	c.Fail(0, "-ERR first")
	for i := range 1000 {
		c.Fail(0, "-C"+strconv.Itoa(i)+" text")
	}
	c.Fail(0, "-ERR again")
	var sum, other uint64
	for _, code := range c.Codes {
		sum += code.N
		if code.Code == otherCode {
			other += code.N
		}
	}
	if c.Codes[0].N != 2 || sum != 1002 || other != 1002-2-(maxCodes-2) {
		t.Errorf("ERR %d, sum %d, other %d", c.Codes[0].N, sum, other)
	}
}
