package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
	"github.com/dunlin-cache/dunlin/internal/mapping"
	"github.com/dunlin-cache/dunlin/node"
)

// memoryShares adjusts the shares of the parts of a process to what changes while it runs: the
// nodes' limits (CONFIG SET maxmemory), and the part of the Go heap that connections use, which
// counts towards those limits. Only the goroutine of serve uses it, but for look.
type memoryShares struct {
	loops    int
	kept     int64           // bytes of free buffers that each loop keeps
	keep     func(bytes int) // has each loop keep so many
	memory   int64           // bytes; of a proxy alone in its process
	nodes    []*node.Node
	proxy    interface{ HeapMemory() int64 }
	clients  clientBuffers // of such a proxy
	heap     heapLimit
	soon     chan struct{} // capacity 1: see look
	short    int           // consecutive adjustments in which nodes could not keep what the heap has
	adjusted int64         // counted when the shares were last adjusted
	looked   time.Time     // at the program's pages
	program  int64         // bytes of them that were resident then beyond binaryMemory
}

const (
	// adjustEvery is how often the shares are adjusted, and lookEvery the shortest time between two
	// looks at whether connections have taken or given back lookStep bytes meanwhile: until its limit
	// follows, the runtime collects without end.
	adjustEvery = time.Second
	lookEvery   = adjustEvery / 20
	lookStep    = 1 << 20
	// mostSoon is how many times in a row the shares are adjusted again after lookEvery, because nodes could not evict
	// as much as the heap has: what a script holds may be there soon.
	mostSoon = 20
	// programStep is in what steps the overhead follows the program's pages.
	programStep = 256 << 10
	// startTime is how long after its start a process forgets what only the start needs.
	startTime = 5 * time.Second
)

// newMemoryShares returns the shares of a process with nodes, or of a proxy that may use so many
// bytes of memory. Each loop keeps kept bytes of free buffers, until keep says otherwise.
func newMemoryShares(loops int, kept int64, keep func(bytes int), memory int64) *memoryShares {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	m := &memoryShares{
		loops: loops, kept: kept, keep: keep, memory: memory,
		clients: clientBuffers{most: proxyBuffers(memory)}, soon: make(chan struct{}, 1),
	}
	if os.Getenv("GOMEMLIMIT") == "" { // otherwise the operator has set the limit
		m.heap = heapLimit{set: func(n int64) { debug.SetMemoryLimit(n) }, collect: debug.FreeOSMemory, use: readHeapUse}
	}
	return m
}

// pipeBuffers returns how many bytes the buffers of a proxy's pipes may take, which are in the Go
// heap: a quarter of what its clients' take or, beside nodes, a quarter of the heap.
func (m *memoryShares) pipeBuffers() int64 {
	if len(m.nodes) == 0 {
		return proxyBuffers(m.memory) / 4
	}
	return goMemory(m.storage(), len(m.nodes)) / 4
}

// run adjusts the shares until ctx ends.
func (m *memoryShares) run(ctx context.Context) {
	timer := time.NewTimer(beat.Until(adjustEvery))
	defer timer.Stop()
	for {
		if time.Since(m.looked) >= adjustEvery-lookEvery/2 {
			m.looked = time.Now()
			m.watchProgram(binaryMemory)
		}
		kept := m.adjust()
		m.watchConnections()
		timer.Reset(m.pause(kept))
		if !m.await(ctx, timer.C) {
			return
		}
	}
}

// pause returns how long the shares stay as they are, after an adjustment in which nodes kept what the heap has, or not.
func (m *memoryShares) pause(kept bool) time.Duration {
	if kept {
		m.short = 0
	} else if m.short++; m.short <= mostSoon {
		return lookEvery
	}
	return beat.Until(adjustEvery)
}

// watchConnections has the nodes report when connections use more or less than now. A proxy reports
// by itself: see proxy.Config.
func (m *memoryShares) watchConnections() {
	m.adjusted = m.counted()
	for _, n := range m.nodes { // the changes of all nodes may add up to a step
		n.OnHeapStep(lookStep/int64(len(m.nodes)), m.look)
	}
}

// await waits until the shares are to be adjusted again: at the end of a period, or when connections
// use a step more or less than when watchConnections was called. It returns false if ctx ends before.
func (m *memoryShares) await(ctx context.Context, end <-chan time.Time) bool {
	for looked := time.Now(); ; {
		select {
		case <-ctx.Done():
			return false
		case <-end:
			return true
		case <-m.soon:
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookEvery - time.Since(looked)): // at once, unless it has just looked
		}
		looked = time.Now()
		if more := m.counted() - m.adjusted; max(more, -more) >= lookStep {
			return true
		}
	}
}

// look has await look, soon, at what connections use. Any goroutine may call it; it does not block.
func (m *memoryShares) look() {
	select {
	case m.soon <- struct{}{}:
	default:
	}
}

// counted is how much of the Go heap connections use.
func (m *memoryShares) counted() (bytes int64) {
	if m.proxy != nil {
		bytes = m.proxy.HeapMemory()
	}
	for _, n := range m.nodes {
		bytes += n.HeapMemory()
	}
	return bytes
}

// scripts is how much of that scripts use.
func (m *memoryShares) scripts() (bytes int64) {
	for _, n := range m.nodes {
		bytes += n.ScriptMemory()
	}
	return bytes
}

// forgetProgram gives the memory back that only the start needs of the program's file.
func (p *process) forgetProgram() {
	if err := mapping.ForgetProgram(); err != nil {
		p.log.Warn("what the start has used of the program stays in memory", "error", err)
	}
}

// storage is the limits of all nodes together.
func (m *memoryShares) storage() (bytes int64) {
	for _, n := range m.nodes {
		bytes += n.MaxMemory()
	}
	return bytes
}

// watchProgram notes how many bytes of the program are resident beyond those that are kept for it, and then gives all
// back: over the hours clients use more and more of it, but never all of that at a time. Those of large nodes, and of a
// proxy, are within what is theirs beside the limit.
func (m *memoryShares) watchProgram(kept int64) {
	m.program = 0
	if len(m.nodes) == 0 {
		return
	}
	bytes, err := mapping.ProgramMemory()
	if err != nil || bytes <= kept {
		return
	}
	m.program = (bytes - kept + programStep - 1) / programStep * programStep
	if m.overhead() > 0 {
		_ = mapping.ForgetProgram() // a failure was logged behind the start
	}
}

// overhead is what each node's limit counts of the process at present.
func (m *memoryShares) overhead() int64 {
	storage := m.storage()
	process := processMemory(storage, keptBuffers(storage, m.loops), m.loops, len(m.nodes)) + m.program
	return overheadOf(process, storage, len(m.nodes))
}

// adjust adjusts the shares, and reports whether nodes keep what the heap has.
func (m *memoryShares) adjust() (kept bool) {
	proxys := int64(0)
	if m.proxy != nil {
		proxys = m.proxy.HeapMemory()
	}
	counted := m.counted()
	if len(m.nodes) == 0 {
		limit := proxyHeap(m.memory, max(m.clients.used.Load()-proxys, 0))
		m.heap.collectAbove(limit)
		m.heap.setLimit(limit)
		return true
	}
	storage := m.storage()
	buffers, overhead, fits := keptBuffers(storage, m.loops), m.overhead(), true
	for _, n := range m.nodes {
		fits = n.SetOverhead(overhead) && fits // if refused, again after evictions
	}
	if buffers < m.kept || buffers > m.kept && fits {
		m.kept = buffers
		m.keep(int(buffers))
	}
	return m.keepHeap(goMemory(storage, len(m.nodes))+proxys, counted-proxys+counted/4+m.scripts()/scriptSlack)
}

// keepHeap gives the runtime a limit of known bytes, which nodes are charged with already, and most of rest,
// which they keep, or of as much as it needs, up to half as much again. They also keep what it has above its limit.
// A heapSlack-th of rest is beyond the limit: large allocations exceed it while the runtime collects. keepHeap reports
// whether they could keep all that.
func (m *memoryShares) keepHeap(known, rest int64) (kept bool) {
	h := &m.heap
	use, slack := h.collectAbove(known+rest), rest/heapSlack
	limit := max(known+rest-slack, min((use.need+needStep-1)/needStep*needStep, (known+rest)/2*3))
	keep := func(bytes int64) {
		kept = true
		for _, n := range m.nodes {
			kept = n.KeepHeap((bytes-known)/int64(len(m.nodes))) && kept
		}
	}
	if limit > h.limit {
		keep(limit + slack)
	}
	h.setLimit(limit)
	keep(max(limit+slack, use.total))
	return kept
}

// heapLimit is the Go runtime's memory limit. The zero value leaves the runtime alone.
type heapLimit struct {
	set     func(int64)
	collect func()
	use     func() heapUse

	limit int64 // the limit set last
	floor int64 // what there was after the last forced collection; 0: it has been below the limit since
}

// setLimit sets the limit.
func (h *heapLimit) setLimit(limit int64) {
	if h.set != nil && limit != h.limit {
		h.limit = limit
		h.set(limit)
	}
}

// collectAbove collects a heap that is above a limit: the runtime itself would wait for the next allocation.
// It does not repeat a collection for bytes that the last one could not free.
func (h *heapLimit) collectAbove(limit int64) (use heapUse) {
	if h.set == nil {
		return heapUse{}
	}
	switch use = h.use(); {
	case use.total <= limit:
		h.floor = 0
	case h.floor == 0 || use.total > h.floor+limit/8:
		h.collect()
		use = h.use()
		h.floor = max(use.total, use.need)
	}
	return use
}

// heapUse is what the runtime's limit applies to, see runtime/debug.SetMemoryLimit.
type heapUse struct {
	total int64 // bytes that the runtime has from the system
	need  int64 // bytes that it needs, so that it need not collect without end
}

const (
	// heapRoom is by how much the heap may grow between two collections, with the megabyte that the
	// runtime leaves below its limit. With much less it collects a hundred times a second.
	heapRoom = 4 << 20
	// heapSlack: this part of what connections and scripts use is beyond the limit.
	heapSlack = 16
	// scriptSlack is the part of their memory that scripts take beside it, with the quarter that everything does: 40 MiB
	// of the heap lived where they had 31.
	scriptSlack = 4
	// needStep is in what steps the limit follows the need: the runtime stops for each.
	needStep = 1 << 20
)

func readHeapUse() heapUse {
	names := [...]string{
		"/memory/classes/total:bytes", "/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes",
		"/memory/classes/heap/objects:bytes", "/gc/heap/live:bytes",
	}
	var samples [len(names)]metrics.Sample
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples[:])
	at := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	total, free, objects, live := at(0)-at(1), at(2), at(3), at(4)
	return heapUse{total: total, need: total - free - objects + live + heapRoom}
}
