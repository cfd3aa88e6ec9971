package ownership

import (
	"slices"
	"testing"
	"time"
)

// A generation is acknowledged only behind all older ones of its pipe, also those that an
// unacknowledged one between them waits for.
func TestGenerations(t *testing.T) {
	var g Generations[string, int]
	claim := func(pipe string, generation uint64, conn int, fresh bool, older ...int) {
		t.Helper()
		got, ok := g.Claim(time.Second, pipe, generation, conn)
		if ok != fresh || !slices.Equal(got, older) {
			t.Errorf("generation %d of %s closes %v, fresh %v; want %v, %v", generation, pipe, got, ok, older, fresh)
		}
	}
	claim("common", 5, 50, true)
	claim("large", 1, 10, true)
	claim("common", 5, 51, false)
	claim("common", 4, 40, false)
	claim("common", 6, 60, true, 50)
	claim("common", 7, 70, true, 50, 60) // 6 still waits for 5
	g.Ended(time.Second, "common", 50)
	g.Ended(time.Second, "common", 60)
	claim("common", 8, 80, true, 70)
	g.Ended(time.Second, "common", 70)
	g.Ended(time.Second, "common", 80)
	claim("common", 8, 81, false)
	claim("common", 9, 90, true)
}

// The newest generation outlives its connection, for a while.
func TestGenerationsAreForgotten(t *testing.T) {
	var g Generations[string, int]
	g.Claim(0, "common", 3, 1)
	if _, fresh := g.Claim(3*GenerationMemory, "common", 3, 2); fresh {
		t.Error("a generation was forgotten while its connection lived")
	}
	end := 3 * GenerationMemory
	g.Ended(end, "common", 1)
	if _, fresh := g.Claim(end+GenerationMemory, "common", 3, 2); fresh {
		t.Error("a generation was forgotten too early")
	}
	if _, fresh := g.Claim(end+2*GenerationMemory+time.Second, "common", 3, 2); !fresh {
		t.Error("a generation is remembered for ever")
	}
}
