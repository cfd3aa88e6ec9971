package main

import (
	"bytes"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

func TestGoMemory(t *testing.T) {
	f := func(storage int64, nodes int, want int64) {
		t.Helper()
		if got := goMemory(storage, nodes); got != want {
			t.Errorf("goMemory(%d MiB, %d nodes) = %d MiB, want %d MiB", storage>>20, nodes, got>>20, want>>20)
		}
	}
	f(64*mib, 1, 14*mib)
	f(64*mib, 3, 24*mib)
	f(768*mib, 3, 48*mib)
	f(gib, 1, 64*mib)
	f(100*gib, 1, 256*mib)
}

// TestFixedCostOfASmallNode: at a limit of 128 MiB the process and its free buffers take no more
// than an eighth.
func TestFixedCostOfASmallNode(t *testing.T) {
	const limit = 128 * mib
	if got := nodeOverhead(limit, keptBuffers(limit, 1), 1, 1); got > limit/8 {
		t.Errorf("the process takes %d bytes of %d", got, limit)
	}
}

// TestProcessFitsItsTenth: what the process takes, less what of it counts as
// overhead, is no more than the tenth above the limit.
func TestProcessFitsItsTenth(t *testing.T) {
	for _, storage := range []int64{64 * mib, 256 * mib, gib, 20 * gib} {
		for _, loops := range []int{1, 4, 15} {
			process := processMemory(storage, keptBuffers(storage, loops), loops, 1)
			overhead := nodeOverhead(storage, keptBuffers(storage, loops), loops, 1)
			if process-overhead > storage/beyond || overhead > 0 && process-overhead < storage/beyond {
				t.Errorf("%d loops, %d MiB: the process has %d MiB, of which %d count",
					loops, storage>>20, process>>20, overhead>>20)
			}
		}
	}
}

func TestDefaultMemoryFitsItsContainer(t *testing.T) {
	for _, container := range []int64{256 * mib, gib, 64 * gib} {
		storage := int64(float64(container) * nodeShare)
		if most := storage + storage/beyond; most > container*85/100 {
			t.Errorf("a node in %d MiB may use %d MiB, which leaves too little for the kernel", container>>20, most>>20)
		}
		if !node.FitsMemory(storage, nodeOverhead(storage, keptBuffers(storage, 1), 1, 1), 1) {
			t.Errorf("a node cannot run in a container of %d MiB", container>>20)
		}
	}
}

// TestCheckMemory: the error names a limit that works, and the smallest one to the MiB.
func TestCheckMemory(t *testing.T) {
	check := func(memory size, nodes, loops int) error {
		o := options{memory: memory}
		return o.checkMemory(nodes, loops)
	}
	for _, x := range []struct{ nodes, loops int }{{1, 1}, {3, 1}, {1, 16}} {
		err := check(mib, x.nodes, x.loops)
		if err == nil {
			t.Fatalf("%+v: 1 MiB works", x)
		}
		named := regexp.MustCompile(`^--memory 1mb is too small with (1 event loop|16 event loops): the smallest that works is (\d+)mb$`).
			FindStringSubmatch(err.Error())
		if named == nil {
			t.Fatalf("%+v: %v", x, err)
		}
		smallest, err := strconv.Atoi(named[2])
		if err != nil || check(size(smallest)*mib, x.nodes, x.loops) != nil ||
			check(size(smallest-1)*mib, x.nodes, x.loops) == nil {
			t.Errorf("%+v: %d MiB is not the smallest", x, smallest)
		}
		if smallest > 100*x.loops {
			t.Errorf("%+v: %d MiB for next to nothing", x, smallest)
		}
	}
	if err := check(0, 0, 1); err != nil {
		t.Errorf("a proxy: %v", err)
	}
}

func TestWarnMemory(t *testing.T) {
	f := func(storage, container int64, want string) {
		t.Helper()
		var log bytes.Buffer
		p := &process{console: &console{log: slog.New(slog.NewTextHandler(&log, nil))}}
		p.warnMemory(storage, container)
		if got := log.String(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d MiB in %d MiB: log %q, want %q", storage>>20, container>>20, got, want)
		}
	}
	f(gib, 0, "")
	f(750*mib, gib, "")
	f(gib, gib, `level=WARN msg="--memory is too large for this container, which kills the process when its memory is full" `+
		`memory="1 GiB" resident_at_most="1.1 GiB" container="1 GiB"`)
	f(0, gib, "")
}
