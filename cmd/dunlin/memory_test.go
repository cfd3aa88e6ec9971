package main

import "testing"

func TestParseMemoryLimit(t *testing.T) {
	f := func(in string, want int64) {
		t.Helper()
		if got := parseMemoryLimit(in); got != want {
			t.Errorf("parseMemoryLimit(%q) = %d, want %d", in, got, want)
		}
	}
	f("1073741824\n", 1<<30)
	f("max\n", 0)
	f("9223372036854771712\n", 0) // how version 1 writes "no limit"
	f("-1\n", 0)
	f("", 0)
}

func TestGoMemoryLimit(t *testing.T) {
	f := func(container, storage, want int64) {
		t.Helper()
		if got := goMemoryLimit(container, storage); got != want {
			t.Errorf("goMemoryLimit(%d, %d) = %d, want %d", container, storage, got, want)
		}
	}
	const gib = 1 << 30
	f(0, 0, gib)               // no container
	f(0, 8*gib, 2*gib)         // a big node has more to do
	f(10*gib, 7*gib, 2*gib)    // the rest of the container, less a tenth
	f(gib, gib, leastGoMemory) // storage leaves nothing: never starve the collector
}

func TestDefaultMemoryFitsItsContainer(t *testing.T) {
	for _, container := range []int64{1 << 30, 4 << 30, 64 << 30} {
		storage := int64(float64(container) * nodeShare)
		if used := storage + storage/10 + leastGoMemory/2; used > container {
			t.Errorf("a node in %d MiB may use %d MiB", container>>20, used>>20)
		}
	}
}
