package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/node"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

func TestGoMemory(t *testing.T) {
	f := func(storage, want int64) {
		t.Helper()
		if got := goMemory(storage); got != want {
			t.Errorf("goMemory(%d MiB) = %d MiB, want %d MiB", storage>>20, got>>20, want>>20)
		}
	}
	f(64*mib, 24*mib)
	f(768*mib, 48*mib)
	f(gib, 64*mib)
	f(100*gib, 256*mib)
}

// TestProcessFitsItsTenth: what the process takes, less what of it counts as
// overhead, is no more than the tenth above the limit.
func TestProcessFitsItsTenth(t *testing.T) {
	for _, storage := range []int64{64 * mib, 256 * mib, gib, 20 * gib} {
		for _, loops := range []int{1, 4, 15} {
			process := binaryMemory + goMemory(storage) + int64(loops)*loopMemory
			overhead := processOverhead(storage, loops)
			if process-overhead > storage/beyond || overhead > 0 && process-overhead < storage/beyond {
				t.Errorf("%d loops, %d MiB: the process has %d MiB, of which %d count", loops, storage>>20, process>>20, overhead>>20)
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
		if !node.FitsMemory(storage, processOverhead(storage, 1), 1) {
			t.Errorf("a node cannot run in a container of %d MiB", container>>20)
		}
	}
}

func TestCheckMemory(t *testing.T) {
	f := func(memory size, nodes, loops int, want string) {
		t.Helper()
		o := options{memory: memory}
		err := o.checkMemory(nodes, loops)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s for each of %d nodes with %d loops: %v, want %q", memory.String(), nodes, loops, err, want)
		}
	}
	f(gib, 1, 1, "")
	f(0, 0, 1, "") // a proxy
	const smallest = 46
	f(mib, 1, 1, "--memory 1mb is too small with 1 event loop: the smallest that works is 46mb")
	f(smallest*mib, 1, 1, "")
	f((smallest-1)*mib, 1, 1, "the smallest that works is 46mb")
	f(32*mib, 3, 1, "")
	f(mib, 3, 1, "the smallest that works is 16mb")
	f(16*mib, 3, 1, "")
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
	f(gib, gib, `level=WARN msg="--memory does not fit into this container, which ends the process when it is full" `+
		`memory="1 GiB" resident_at_most="1.1 GiB" container="1 GiB"`)
	f(0, gib, "")
}
