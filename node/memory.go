package node

import (
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// What connections take of the node's one budget. The engine's limit is charged by
// netloop before it makes a buffer, and the engine evicts for that as for a value.

const (
	// connMemory is what a connection takes in the Go heap without any buffer (8,000 of
	// them: 1,010 bytes each).
	connMemory = 1 << 10
	// maxFloor is what the connections of a loop may always have, whatever the data
	// takes: buffers of 4 KiB for as many as have their turn in an iteration. Under
	// noeviction the data takes all the rest.
	maxFloor = 4 << 20
	// floorShare is the largest part of the limit that goes to the floors of all loops.
	floorShare = 16
	// connShare: connections have at most half of the limit. Clients that do not read, or
	// never end their requests, must not cost the others all their keys.
	connShare = 2
)

// connBudget is the engine's budget as far as connections may have it.
type connBudget struct{ n *Node }

func (b connBudget) Charge(bytes int64) bool {
	e := b.n.engine
	return e.Outside()-b.n.overhead.Load()+bytes <= e.MaxBytes()/connShare && e.Charge(bytes)
}

func (b connBudget) Refund(bytes int64) { b.n.engine.Refund(bytes) }

// connFloor is the floor of each loop.
func connFloor(memory int64, loops int) int64 {
	return min(maxFloor, memory/floorShare/int64(loops))
}

// FitsMemory reports whether a node with so many loops can be run in memory bytes, of which
// overhead are the process's.
func FitsMemory(memory, overhead int64, loops int) bool {
	outside := overhead + int64(loops)*connFloor(memory, loops)
	return memory >= engine.SmallestLimit(engine.ShardsFor(loops, memory), memory, outside)
}

// MaxMemory is the limit at present.
func (n *Node) MaxMemory() int64 { return n.engine.MaxBytes() }

// SetMaxMemory changes the limit, as CONFIG SET maxmemory does.
func (n *Node) SetMaxMemory(bytes int64) error { return n.setMemory(bytes) }

// HeapMemory is how much of the Go heap counts towards the limit beside Overhead, about.
func (n *Node) HeapMemory() int64 {
	total := n.lists.Load()
	for _, w := range n.workers {
		total += w.heap.Load()
	}
	return total
}

// heapBudget charges what handlers keep in the Go heap. HeapMemory has it.
type heapBudget struct{ n *Node }

func (b heapBudget) Charge(bytes int64) bool {
	if !b.n.Charge(bytes) {
		return false
	}
	b.n.lists.Add(bytes)
	return true
}

func (b heapBudget) Refund(bytes int64) {
	b.n.lists.Add(-bytes)
	b.n.engine.Refund(bytes)
}

// SetOverhead changes how much of the limit is the process's. False: there is not so
// much left, and what was said before holds. Calls must not overlap.
func (n *Node) SetOverhead(bytes int64) bool {
	more := bytes - n.overhead.Load()
	if more > 0 && !n.engine.Charge(more) {
		return false
	}
	if more < 0 {
		n.engine.Refund(-more)
	}
	n.overhead.Store(bytes)
	return true
}

// Charge and Refund let others in this process, a proxy, take of the node's memory for
// their connections' buffers.
func (n *Node) Charge(bytes int64) bool { return connBudget{n}.Charge(bytes) }

// Refund gives back what Charge took.
func (n *Node) Refund(bytes int64) { connBudget{n}.Refund(bytes) }

// chargeParser counts what the parser has for a long request, which may be three times
// the request, and an upload for its other arguments.
func (cn *conn) chargeParser() {
	n := cn.parser.Overhead()
	if n > 0 {
		cn.parser.Release()
		n = cn.parser.Overhead()
	}
	if cn.Upload != nil {
		n += cn.Upload.Kept
	}
	cn.Socket.SetOther(connMemory + n + cn.State.QueuedBytes())
}

// OnStarve ends a connection whose request cannot be taken in: the client is told what a
// write would be told.
func (cn *conn) OnStarve(*netloop.Conn) []byte {
	cn.Closing = true
	cn.worker.Count.Fail(0, exec.ErrOOM)
	return []byte("-" + exec.ErrOOM + "\r\n")
}
