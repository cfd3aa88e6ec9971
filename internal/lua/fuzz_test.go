package lua

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestGeneratedPrograms runs random programs here and in lua5.1. LUA_PROGRAMS=n asks for another number
// of them, LUA_SEED=n begins with another seed.
func TestGeneratedPrograms(t *testing.T) {
	long(t)
	n, seed := 3000, 0
	if testing.Short() {
		n = 500
	}
	if s := os.Getenv("LUA_PROGRAMS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("LUA_SEED"); s != "" {
		seed, _ = strconv.Atoi(s)
	}
	for ; n > 0; n -= 1000 {
		programs := make([]string, min(n, 1000))
		for i := range programs {
			programs[i] = generate(uint64(seed + i))
		}
		seed += len(programs)
		wrong := 0
		for i, want := range peerOutputs(t, programs) {
			got := strings.TrimSuffix(run(t, programs[i]), "\n")
			if got == want {
				continue
			}
			t.Errorf("seed %d: %s", seed-len(programs)+i, firstDifference(got, want))
			if wrong++; wrong == 5 {
				t.Fatal("and perhaps more")
			}
		}
	}
}

// firstDifference shows the first lines that differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			other := ""
			if i < len(b) {
				other = b[i]
			}
			return "line " + strconv.Itoa(i+1) + " is " + strconv.Quote(a[i]) + ", lua5.1 prints " + strconv.Quote(other)
		}
	}
	return "lua5.1 prints more: " + strconv.Quote(strings.Join(b[len(a):], "\n"))
}

// FuzzRun runs any text: whatever it is, it ends within its budgets and without a panic.
func FuzzRun(f *testing.F) {
	for _, program := range languagePrograms {
		f.Add(program)
	}
	for _, program := range libraryPrograms {
		f.Add(program)
	}
	for seed := range uint64(20) {
		f.Add(generate(seed))
	}
	f.Fuzz(func(t *testing.T, source string) {
		runLimited(t, source, Limits{Steps: 200_000, Bytes: 1 << 20})
	})
}
