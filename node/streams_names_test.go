package node

import (
	"strings"
	"testing"
)

// TestStreamNamesMayBeEmpty: what walks over groups and consumers ends, also if the first of them has an empty name.
func TestStreamNamesMayBeEmpty(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.do("XADD s 1-1 f v")
	for _, group := range []string{`""`, "g"} {
		c.want("XGROUP CREATE s "+group+" 0", "OK")
		for _, consumer := range []string{`""`, "c"} {
			c.want("XGROUP CREATECONSUMER s "+group+" "+consumer, "(integer) 1")
		}
	}
	f := func(command, word string, times int) {
		t.Helper()
		if got := c.do(command); strings.Count(got, word) != times {
			t.Errorf("%s: %q stands %d times, want %d, in\n%s", command, word, strings.Count(got, word), times, got)
		}
	}
	c.do(`XREADGROUP GROUP "" "" STREAMS s >`)
	f("XINFO STREAM s FULL", `"name"`, 6)
	f("XINFO GROUPS s", `"name"`, 2)
	f(`XINFO CONSUMERS s ""`, `"name"`, 2)
	f(`XPENDING s ""`, `1) ""`, 1)
	c.do("XADD s 2-1 f v")
	c.do(`XREADGROUP GROUP "" c STREAMS s >`)
	f(`XPENDING s "" - + 9 ""`, `"1-1"`, 1)
	f(`XPENDING s "" - + 9 ""`, `"2-1"`, 0)
}
