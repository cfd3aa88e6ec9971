package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlin-cache/dunlin/internal/mapping"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node"
)

// fakeHeap stands in for the runtime's heap.
type fakeHeap struct {
	limit    int64
	use      int64
	need     int64
	afterGC  int64
	collects int
}

func (f *fakeHeap) heapLimit() heapLimit {
	return heapLimit{
		set:     func(n int64) { f.limit = n },
		collect: func() { f.collects++; f.use = f.afterGC },
		use:     func() heapUse { return heapUse{f.use, f.need} },
	}
}

func newTestShares(container int64) (*memoryShares, *fakeHeap) {
	f := &fakeHeap{use: 10 * mib}
	return &memoryShares{
		soon:  make(chan struct{}, 1),
		loops: 1, kept: mostKept, keep: func(int) {}, memory: container, clients: clientBuffers{most: proxyBuffers(container)}, heap: f.heapLimit(),
	}, f
}

func testNode(t *testing.T, memory int64) *node.Node {
	t.Helper()
	loops, err := netloop.NewGroup(netloop.Config{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(loops.Close)
	n, err := node.Start(node.Config{ID: "n", Boot: 1, Listen: "127.0.0.1:0", Memory: memory, Group: loops,
		Overhead: nodeOverhead(memory, keptBuffers(memory, 1), 1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// TestSharesFollowTheLimits: the runtime's limit, the overhead, and the free buffers that loops
// keep are those of the nodes' limits as they are now.
func TestSharesFollowTheLimits(t *testing.T) {
	m, heap := newTestShares(0)
	n := testNode(t, 2*gib)
	m.nodes = append(m.nodes, n)
	keeps := int64(mostKept)
	m.keep = func(n int) { keeps = int64(n) }
	f := func(memory, wantLimit, wantOverhead int64) {
		t.Helper()
		if err := n.SetMaxMemory(memory); err != nil {
			t.Fatal(err)
		}
		m.adjust()
		stats, err := n.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if want := keptBuffers(memory, 1); keeps != want {
			t.Errorf("%d MiB: a loop keeps %d bytes of free buffers, want %d", memory>>20, keeps, want)
		}
		if heap.limit != wantLimit || stats.Overhead != wantOverhead {
			t.Errorf("%d MiB: the runtime's limit is %d, the overhead %d, want %d and %d",
				memory>>20, heap.limit, stats.Overhead, wantLimit, wantOverhead)
		}
	}
	f(2*gib, 128*mib, 0)
	f(100*mib, 14*mib, nodeOverhead(100*mib, keptBuffers(100*mib, 1), 1, 1))
	f(gib, 64*mib, 0)
}

// TestSharesAreAdjustedSoon: as long as a node cannot keep what the heap has, the shares are adjusted again soon, but
// not for ever.
func TestSharesAreAdjustedSoon(t *testing.T) {
	m, heap := newTestShares(0)
	m.nodes = append(m.nodes, testNode(t, 100*mib))
	for range 2 {
		heap.use, heap.afterGC = 200*mib, 200*mib
		for i := range mostSoon {
			if pause := m.pause(m.adjust()); pause != lookEvery {
				t.Fatalf("after %d adjustments the next one is in %v", i+1, pause)
			}
		}
		if pause := m.pause(m.adjust()); pause == lookEvery {
			t.Error("they are adjusted soon for ever")
		}
		heap.use, heap.afterGC = 10*mib, 10*mib
		if pause := m.pause(m.adjust()); pause == lookEvery {
			t.Error("they are adjusted soon although the node keeps what the heap has")
		}
	}
}

func TestSharesOfProxy(t *testing.T) {
	m, heap := newTestShares(gib)
	buffers := &m.clients
	m.adjust()
	if want := int64(gib) * 9 / 10; heap.limit < want-1 || heap.limit > want {
		t.Errorf("the runtime's limit is %d, want %d", heap.limit, want)
	}
	if !buffers.Charge(400*mib) || buffers.Charge(200*mib) || !buffers.Charge(100*mib) {
		t.Error("clients cannot have half of the memory, or more")
	}
	m.adjust()
	if want := int64(gib)*9/10 - 500*mib; heap.limit < want-1 || heap.limit > want {
		t.Errorf("beside buffers the runtime's limit is %d, want %d", heap.limit, want)
	}
	buffers.Refund(500 * mib)
}

// TestWatchProgram: pages of the program that take more than is kept for them count towards a small node's limit, and
// are given back.
func TestWatchProgram(t *testing.T) {
	memory := func() int64 {
		bytes, err := mapping.ProgramMemory()
		if err != nil || bytes == 0 {
			t.Skip("the system does not tell how much of the program is in memory")
		}
		return bytes
	}
	m, _ := newTestShares(0)
	n := testNode(t, 100*mib)
	m.nodes = append(m.nodes, n)
	overhead := func() int64 {
		t.Helper()
		m.adjust()
		stats, err := n.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return stats.Overhead
	}
	base, before := overhead(), memory()
	m.watchProgram(1 << 40)
	if now := memory(); now < before || overhead() != base {
		t.Fatalf("%d of %d bytes were given back, the overhead is %d, want %d: below the limit", before-now, before, overhead(), base)
	}
	before = memory()
	m.watchProgram(before - mib)
	if now := memory(); now >= before {
		t.Errorf("%d bytes are in memory, want less than the %d before", now, before)
	}
	if got := overhead(); got < base+mib || got > base+mib+2*programStep {
		t.Errorf("the overhead is %d, want a MiB more than %d", got, base)
	}
	m.watchProgram(1 << 40)
	if got := overhead(); got != base {
		t.Errorf("the overhead is %d, want %d as before", got, base)
	}
}

// TestProxyMemory checks that a proxy has a limit everywhere.
func TestProxyMemory(t *testing.T) {
	f := func(container, machine, want int64) {
		t.Helper()
		if got := proxyMemory(container, machine); got != want {
			t.Errorf("in a container of %d on a machine of %d: %d, want %d", container, machine, got, want)
		}
	}
	f(2*gib, 64*gib, 2*gib)
	f(0, 64*gib, 16*gib)
	f(0, 0, gib)
	if machine := machineMemory(os.DirFS("/")); runtime.GOOS == "linux" && machine < 256*mib {
		t.Errorf("this machine has %d bytes of memory", machine)
	}
	if got := machineMemory(fstest.MapFS{"proc/meminfo": {Data: []byte("MemFree: 5 kB\nMemTotal:       16384 kB\n")}}); got != 16*mib {
		t.Errorf("16 MiB are read as %d", got)
	}
}

// TestHeapLimitCollects: a heap that is above its limit and rests is collected, but not again and
// again when that does not help.
func TestHeapLimitCollects(t *testing.T) {
	var heap fakeHeap
	h := heap.heapLimit()
	f := func(what string, use, afterGC int64, want int) {
		t.Helper()
		heap.use, heap.afterGC = use, afterGC
		before := heap.collects
		h.collectAbove(24 * mib)
		if got := heap.collects - before; got != want {
			t.Errorf("%s: collected %d times, want %d", what, got, want)
		}
	}
	f("below the limit", 20*mib, 0, 0)
	f("above it", 40*mib, 30*mib, 1)
	f("still above it", 30*mib, 0, 0)
	f("hardly more", 31*mib, 0, 0)
	f("more", 40*mib, 10*mib, 1)
	f("below", 10*mib, 0, 0)
	f("above it again", 25*mib, 10*mib, 1)
}

// TestHeapLimitFollowsTheNeed: a heap that needs more than its share gets it, from the node's limit.
func TestHeapLimitFollowsTheNeed(t *testing.T) {
	m, heap := newTestShares(0)
	n := testNode(t, 128*mib)
	m.nodes = append(m.nodes, n)
	f := func(need, want int64) {
		t.Helper()
		heap.need = need
		m.adjust()
		stats, err := n.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if heap.limit != want || stats.Garbage != want-14*mib {
			t.Errorf("with a need of %d the limit is %d, want %d, of which the node keeps %d", need, heap.limit, want, stats.Garbage)
		}
	}
	f(10*mib, 14*mib)
	f(19*mib+1, 20*mib)
	f(16*mib, 16*mib)
	f(gib, 21*mib) // and no more
	f(10*mib, 14*mib)
}

// TestHeapLimitHasSlack: nodes keep more for what connections and scripts use than the runtime's limit lets it have.
func TestHeapLimitHasSlack(t *testing.T) {
	m, heap := newTestShares(0)
	n := testNode(t, 128*mib)
	m.nodes = append(m.nodes, n)
	f := func(need, want, wantKept int64) {
		t.Helper()
		heap.need = need
		m.keepHeap(14*mib, 32*mib)
		stats, err := n.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if heap.limit != want || stats.Garbage != wantKept {
			t.Errorf("with a need of %d the limit is %d and the node keeps %d, want %d and %d", need, heap.limit, stats.Garbage, want, wantKept)
		}
	}
	f(10*mib, 44*mib, 32*mib)
	f(50*mib, 50*mib, 38*mib)
}

// TestHeapUse: what the runtime needs is what it has without garbage, and some room.
func TestHeapUse(t *testing.T) {
	garbage := make([]byte, 64*mib)
	had := readHeapUse()
	runtime.KeepAlive(garbage)
	runtime.GC()
	use := readHeapUse()
	if had.total < 64*mib || use.need > had.total-32*mib || use.need < 1*mib+heapRoom {
		t.Errorf("with 64 MiB of garbage %+v, behind a collection %+v", had, use)
	}
}

// TestHeapLimitOfOperator: with GOMEMLIMIT the runtime's limit is not touched.
func TestHeapLimitOfOperator(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "100MiB")
	t.Setenv("GOGC", "100")
	before := debug.SetMemoryLimit(-1)
	newMemoryShares(1, mostKept, nil, gib).adjust()
	if after := debug.SetMemoryLimit(-1); after != before {
		t.Errorf("the operator's limit of %d was changed to %d", before, after)
	}
}

// TestSharedBudget: nodes that share their process with a proxy give alike, and get
// back what they gave.
func TestSharedBudget(t *testing.T) {
	var nodes []*node.Node
	var before []int64
	outside := func(n *node.Node) int64 {
		stats, err := n.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return stats.Engine.Outside
	}
	for range 3 {
		n := testNode(t, 64*mib)
		nodes = append(nodes, n)
		before = append(before, outside(n))
	}
	b := &nodesBudget{nodes: nodes}
	held := int64(0)
	for _, n := range []int64{1, 1, 1, 100_000, 7, 1 << 20} {
		if !b.Charge(n) {
			t.Fatalf("%d bytes are refused", n)
		}
		held += n
	}
	sum := int64(0)
	for i, n := range nodes {
		got := outside(n) - before[i]
		if got < held/3 || got > held/3+1 {
			t.Errorf("node %d gave %d of %d bytes", i, got, held)
		}
		sum += got
	}
	if sum != held || b.Charge(64*mib*3) {
		t.Errorf("%d bytes were given for %d, or more than there is", sum, held)
	}
	for _, n := range []int64{2, 50_001, 7} {
		b.Refund(n)
		held -= n
	}
	b.Refund(held)
	for i, n := range nodes {
		if got := outside(n); got != before[i] {
			t.Errorf("node %d has %d bytes outside, before %d", i, got, before[i])
		}
	}
}

// TestSharesFollowConnectionsSoon: the shares follow a step that connections take or give back before
// the period is over, and nobody looks for less.
func TestSharesFollowConnectionsSoon(t *testing.T) {
	m, _ := newTestShares(0)
	n, other := testNode(t, gib), testNode(t, gib)
	m.nodes = append(m.nodes, n, other)
	for _, n := range m.nodes {
		m.watchConnections()
		connections := n.ForMembers().(netloop.HeapBudget)
		if !connections.ChargeHeap(lookStep/4, lookStep/4) {
			t.Fatal("a quarter of a step is refused")
		}
		if len(m.soon) > 0 {
			t.Error("it looks for a quarter of a step")
		}
		if !connections.ChargeHeap(lookStep, lookStep) {
			t.Fatal("a step is refused")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if !m.await(ctx, nil) {
			t.Error("it does not look for a step")
		}
		cancel()
	}
	m.watchConnections()
	n.ForMembers().(netloop.HeapBudget).RefundHeap(lookStep, lookStep)
	if len(m.soon) == 0 {
		t.Error("it does not look for a step that is given back")
	}
}
