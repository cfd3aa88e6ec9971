package node

import (
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Connections take their memory of the node's one budget. netloop charges the engine's limit before
// it makes a buffer, and the engine evicts for a buffer as for a value.

const (
	// connMemory is what a connection without any buffer takes in the Go heap, in bytes (measured
	// with 8,000 of them: 1,010 each).
	connMemory = 1 << 10
	// maxFloor is what the connections of a loop can always have, whatever the data takes, in
	// bytes: buffers of 4 KiB for as many as have their turn in an iteration. Under noeviction the
	// data takes all the rest.
	maxFloor = 4 << 20
	// floorShare is the largest part of the limit that all loops' floors take together.
	floorShare = 128
	// connShare bounds connections to half of the limit. Clients that do not read, or never end
	// their requests, must not cost the others all their keys.
	connShare = 2
	// memberPart is the part of that which commands leave to members' connections, so that a command finds
	// no memory before a proxy's pipe or a stream does. Clients' connections, scripts and what is borrowed leave
	// twice as much: who sends requests and never ends them does not keep others' commands from being executed.
	// memberFloor is the part of a floor that members' connections have beside it.
	memberPart  = 8
	memberFloor = 4
	// firstBuffer is the smallest buffer, which the first reply takes.
	firstBuffer = 4 << 10
)

// connBudget is the engine's budget, as far as clients' connections may use it.
type connBudget struct{ n *Node }

// memberBudget is the budget of members' connections.
type memberBudget struct{ n *Node }

func (b connBudget) Charge(bytes int64) bool   { return b.has(bytes) && b.n.engine.Charge(bytes) }
func (b memberBudget) Charge(bytes int64) bool { return b.has(bytes) && b.n.engine.Charge(bytes) }

func (b connBudget) Refund(bytes int64)   { b.n.engine.Refund(bytes) }
func (b memberBudget) Refund(bytes int64) { b.n.engine.Refund(bytes) }

// has reports whether clients' connections may use so many bytes more.
func (b connBudget) has(bytes int64) bool { return memberBudget(b).hasBeside(2, bytes) }

// hasBeside reports whether there are so many bytes more beside some parts that others have.
func (b memberBudget) hasBeside(parts, bytes int64) bool {
	return b.has(bytes + parts*b.n.engine.MaxBytes()/connShare/memberPart)
}

// has reports whether members' connections may use so many bytes more.
func (b memberBudget) has(bytes int64) bool {
	e, g := b.n.engine, &b.n.garbage
	most := e.MaxBytes()/connShare - e.Replies() - bytes
	if e.Outside()-b.n.overhead.Load()-g.size.Load() <= most {
		return true
	}
	g.mu.Lock() // and not between the steps of chargeApartLocked
	defer g.mu.Unlock()
	return e.Outside()-b.n.overhead.Load()-g.size.Load()-g.moving <= most
}

// ChargeHeap is the method of netloop.HeapBudget. What is garbage is charged already.
func (b connBudget) ChargeHeap(bytes, missing int64) bool {
	return (missing == 0 || b.has(missing)) && b.n.chargeConns(bytes, missing)
}

// ChargeHeap is the method of netloop.HeapBudget.
func (b memberBudget) ChargeHeap(bytes, missing int64) bool {
	return (missing == 0 || b.has(missing)) && b.n.chargeConns(bytes, missing)
}

// chargeConns charges what connections have in the Go heap, of which missing bytes are not charged yet.
func (n *Node) chargeConns(bytes, missing int64) bool {
	had := n.garbage.use(bytes)
	switch {
	case had > missing:
		n.engine.Refund(had - missing)
	case had < missing && !n.engine.Charge(missing-had):
		n.garbage.size.Add(had)
		return false
	}
	n.conns.Add(bytes)
	n.noteHeap()
	return true
}

// RefundHeap is the method of netloop.HeapBudget.
func (b connBudget) RefundHeap(bytes, free int64) { memberBudget(b).RefundHeap(bytes, free) }

// RefundHeap is the method of netloop.HeapBudget.
func (b memberBudget) RefundHeap(bytes, free int64) {
	if b.n.conns.Add(-bytes); free > 0 {
		b.n.refundHeap(free)
	}
	b.n.noteHeap()
}

// connFloor returns the floor of each loop's clients.
func connFloor(memory int64, loops int) int64 {
	return min(maxFloor, memory/floorShare/int64(loops))
}

// floorsOf returns the floors of all loops.
func floorsOf(memory int64, loops int) int64 {
	floor := connFloor(memory, loops)
	return int64(loops) * (floor + floor/memberFloor)
}

// FitsMemory reports whether a node with that many loops can run in memory bytes, of which the
// process takes overhead for itself.
func FitsMemory(memory, overhead int64, loops int) bool {
	outside := overhead + floorsOf(memory, loops)
	return memory >= engine.SmallestLimit(engine.ShardsFor(loops, memory), memory, outside)
}

// MaxMemory returns the present limit.
func (n *Node) MaxMemory() int64 { return n.engine.MaxBytes() }

// SetMaxMemory changes the limit, as CONFIG SET maxmemory does.
func (n *Node) SetMaxMemory(bytes int64) error { return n.setMemory(bytes) }

// HeapMemory returns how much of the Go heap counts towards the limit beside Overhead.
func (n *Node) HeapMemory() int64 { return n.lists.Load() + n.conns.Load() }

// ScriptMemory returns how much of HeapMemory scripts have taken while they run.
func (n *Node) ScriptMemory() int64 { return n.scripts.granted.Load() }

// heapWatch is who wants to know that HeapMemory has changed by a step.
type heapWatch struct {
	from, step int64
	tell       func()
}

// OnHeapStep has tell called when HeapMemory differs by step bytes or more from what it is now, and
// again with each change until OnHeapStep is called again. tell must not block: loops call it, which
// may hold locks of the engine. Any goroutine may call OnHeapStep.
func (n *Node) OnHeapStep(step int64, tell func()) {
	n.heapWatch.Store(&heapWatch{n.HeapMemory(), step, tell})
	n.noteHeap() // what has changed meanwhile
}

// noteHeap is called after each change of HeapMemory.
func (n *Node) noteHeap() {
	if w := n.heapWatch.Load(); w != nil {
		if more := n.HeapMemory() - w.from; max(more, -more) >= w.step {
			w.tell()
		}
	}
}

// garbage is memory of the Go heap that nobody uses any more and that stays charged: the runtime may
// have it until it gets a lower limit. Otherwise values would take its place while it is still there.
type garbage struct {
	size atomic.Int64

	mu     sync.Mutex
	limit  int64 // of HeapMemory and garbage together, as the runtime knows it
	moving int64 // what chargeApartLocked charges or refunds now
}

// keep returns how much of some bytes that are not used any more is garbage. counted is HeapMemory
// without them.
func (g *garbage) keep(bytes, counted int64) (kept int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept = min(bytes, max(0, g.limit-counted-g.size.Load()))
	g.size.Add(kept)
	return kept
}

// use returns how much of some bytes that are used from now on was garbage, and charged.
func (g *garbage) use(bytes int64) (charged int64) {
	if g.size.Load() == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	charged = min(bytes, g.size.Load())
	g.size.Add(-charged)
	return charged
}

// KeepHeap has the node keep so much of its limit for the Go heap beside Overhead, whether commands
// use it or not. Call it before the runtime gets a higher limit, and after it has got a lower one.
// Calls must not overlap. It reports whether there was so much; if not, the node keeps what there was.
func (n *Node) KeepHeap(bytes int64) bool {
	g := &n.garbage
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = bytes
	for {
		more := max(bytes-n.HeapMemory(), 0) - g.size.Load()
		if !n.chargeApartLocked(min(more, keepStep), &g.size) {
			return false
		}
		if more <= keepStep {
			return true
		}
	}
}

// keepStep is in what steps KeepHeap takes memory, in bytes.
const keepStep = 1 << 20

// chargeApartLocked charges the engine with so many bytes more or, if they are negative, fewer, that
// connections do not have, and that counter counts. It returns false, and changes nothing, if they
// are not available. Between its two steps connections would seem to have them. The caller holds
// garbage.mu, which is free during the engine's step: that one may evict.
func (n *Node) chargeApartLocked(more int64, counter *atomic.Int64) bool {
	g, moved := &n.garbage, max(more, -more)
	counter.Add(min(more, 0)) // at once, so that nobody uses what is refunded
	g.moving += moved
	g.mu.Unlock()
	charged := more > 0 && n.engine.ChargeAlone(more)
	if more < 0 {
		n.engine.Refund(-more)
	}
	g.mu.Lock()
	g.moving -= moved
	if charged {
		counter.Add(more)
	}
	return charged || more <= 0
}

// refundHeap gives back what commands or connections had in the Go heap, as far as it is no garbage.
func (n *Node) refundHeap(bytes int64) {
	n.engine.Refund(bytes - n.garbage.keep(bytes, n.HeapMemory()))
}

// heapBudget charges what handlers keep in the Go heap.
type heapBudget struct{ n *Node }

func (b heapBudget) Charge(bytes int64) bool {
	if !memberBudget(b).hasBeside(1, bytes) {
		return false
	}
	had := b.n.garbage.use(bytes)
	if had < bytes && !b.n.engine.Charge(bytes-had) {
		b.n.garbage.size.Add(had)
		return false
	}
	b.n.lists.Add(bytes)
	b.n.noteHeap()
	return true
}

func (b heapBudget) Refund(bytes int64) {
	b.n.lists.Add(-bytes)
	b.n.refundHeap(bytes)
	b.n.noteHeap()
}

// scratchBudget charges what scripts work with, and commands that borrow values from other nodes. They leave as much to
// others' commands as clients' connections do.
type scratchBudget struct{ n *Node }

func (b scratchBudget) Charge(bytes int64) bool { return b.has(bytes) && heapBudget(b).Charge(bytes) }
func (b scratchBudget) Refund(bytes int64)      { heapBudget(b).Refund(bytes) }
func (b scratchBudget) has(bytes int64) bool    { return connBudget(b).has(bytes) }

// StageReply begins a part of a reply, see exec.Gathered.
func (b heapBudget) StageReply(bytes int) (engine.Staged, error) {
	if !memberBudget(b).hasBeside(1, int64(bytes)) {
		return engine.Staged{}, engine.ErrMemory
	}
	return b.n.engine.StageReply(bytes)
}

// SetOverhead changes how much of the limit the process takes for itself. It returns false if there
// is not that much left; then the previous amount holds. Calls must not overlap.
func (n *Node) SetOverhead(bytes int64) bool {
	n.garbage.mu.Lock()
	defer n.garbage.mu.Unlock()
	return n.chargeApartLocked(bytes-n.overhead.Load(), &n.overhead)
}

// Charge and Refund let a proxy in this process take the node's memory for its connections'
// buffers.
func (n *Node) Charge(bytes int64) bool { return connBudget{n}.Charge(bytes) }

// Refund returns what Charge took.
func (n *Node) Refund(bytes int64) { connBudget{n}.Refund(bytes) }

// ForMembers is the budget of members' connections, for a relay in this process.
func (n *Node) ForMembers() netloop.Budget { return memberBudget{n} }

// chargeParser charges what the parser keeps of a long request, which can be three times the
// request, what an upload keeps of its other arguments, commands that are answered later
// or visit all clients, subscriptions, and prefixes that are followed.
func (cn *conn) chargeParser() {
	if cn.parser.Overhead() > 0 {
		cn.parser.Release()
	}
	cn.Socket.SetOther(cn.otherBytes())
}

// otherBytes is what the connection takes outside of its buffers.
func (cn *conn) otherBytes() int {
	n := connMemory + cn.parser.Overhead() + cn.State.OwnBytes() + cn.jobs.charge + cn.blockedCharge
	n += cap(cn.behind) + cn.followCharge
	if cn.visit != nil {
		n += cn.visit.about.Bytes()
	}
	if cn.Upload != nil {
		n += cn.Upload.Kept
	}
	if cn.topics != nil {
		n += cn.topics.Bytes() + cap(cn.topics.held) + cn.topics.naming
	}
	if cn.pipe != nil && cn.pipe.listener != nil {
		n += cn.pipe.listener.bytes
	}
	return n
}

// OnStarve closes a connection whose request finds no memory. The client gets the error that a
// write would get.
func (cn *conn) OnStarve(*netloop.Conn) []byte {
	cn.Closing = true
	cn.worker.Count.Fail(0, exec.ErrOOM)
	return []byte("-" + exec.ErrOOM + "\r\n")
}
