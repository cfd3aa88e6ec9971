//go:build linux && !race

package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// someWords is how many words of a pattern are replaced in turn.
const someWords = 6

// wordTurn has room for reading a megabyte, which takes 1 to 2 ms. To look at each byte of hugeWord by itself takes 2 to
// 20 ms more.
const wordTurn = 3 * time.Millisecond

// TestTimeLawOfHugeWords: nor does any word keep a loop for its length, wherever in a command it stands.
func TestTimeLawOfHugeWords(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startLeveled)
	rig.turnMost = wordTurn
	for row := range rowsOfLaw() {
		asked := make(map[string]bool)
		first, _, _ := strings.Cut(hostile[row.Name], ";")
		for _, pattern := range patternsOf(row, first) {
			for what, args := range hugeRequests(row, pattern) {
				if !asked[what] {
					asked[what] = true
					rig.measure("client", what, args)
				}
			}
		}
	}
}

// hugeRequests returns the beginning of what a pattern asks for, with each word in turn as long as can be, by what it
// is.
func hugeRequests(row *command.Command, pattern string) map[string][][]byte {
	requests := make(map[string][][]byte)
	args := requestOf(pattern, someWords)
	args = args[:min(len(args), someWords)]
	if row.Arity < 0 && len(args) == -row.Arity {
		args = append(args, []byte("1"))
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a[:min(len(a), len("{k}places"))])
	}
	for i := 1 + strings.Count(row.Name, "|"); i < len(args); i++ {
		huge, what := slices.Clone(args), slices.Clone(words)
		huge[i], what[i] = hugeWord, "HUGE"
		requests[strings.Join(what, " ")] = huge
	}
	return requests
}
