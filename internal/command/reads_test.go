package command

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func wordsOf(line string) (args [][]byte) {
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	return args
}

// TestReads: the keys of XREAD and XREADGROUP are found whatever the names of groups and consumers.
func TestReads(t *testing.T) {
	for line, want := range map[string][]int{
		"xread streams a 0":                                                    {2},
		"XREAD COUNT 5 BLOCK 0 STREAMS a b 0 $":                                {6, 7},
		"xreadgroup group g c streams a >":                                     {5},
		"xreadgroup group streams streams streams a b > >":                     {5, 6},
		"xreadgroup count 1 group streams c noack claim 5 block 9 streams a >": {12},
		"xread count streams streams a 0":                                      {4},
		"xread streams a":                                                      nil,
		"xread streams":                                                        nil,
		"xread foo streams a 0":                                                nil,
		"xread count 1":                                                        nil,
	} {
		args := wordsOf(line)
		got, _ := Row(args).AppendKeys(nil, args)
		if !slices.Equal(got, want) {
			t.Errorf("%q: keys %v, want %v", line, got, want)
		}
	}
	for line, want := range map[string]Reads{
		"xread block 7 count 1 streams a b 0 $":                {Block: 2, Count: 4, First: 6, Keys: 2},
		"xread block 7 block 8 streams a 0":                    {Block: 4, First: 6, Keys: 1},
		"xreadgroup noack claim 5 group g c streams a b c > >": {NoAck: 1, MinIdle: 3, Group: 5, First: 8, Keys: 2},
		"xreadgroup group g":                                   {},
		"xreadgroup group g c streams s >":                     {Group: 2, First: 5, Keys: 1},
	} {
		if got := ReadsOf(wordsOf(line)); got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}

// TestLimit: only calls that say how long they wait, wait.
func TestLimit(t *testing.T) {
	for line, want := range map[string]struct {
		at   int
		unit time.Duration
	}{
		"blpop a b 7":                              {3, time.Second},
		"blmpop 7 1 a left":                        {1, time.Second},
		"xread streams a 0":                        {},
		"xread block 7 streams a 0":                {2, time.Millisecond},
		"xreadgroup group g c block 7 streams a >": {5, time.Millisecond},
		"xreadgroup group block 1 streams a >":     {},
		"get a":                                    {},
		"wait 1 7":                                 {},
	} {
		args := wordsOf(line)
		if at, unit := Row(args).Limit(args); at != want.at || unit != want.unit {
			t.Errorf("%q: %d, %v", line, at, unit)
		}
	}
}
