package node

import (
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
)

// connBudget is the engine's budget, as far as connections may use it.
type connBudget struct{ n *Node }

func (b connBudget) Charge(bytes int64) bool { return b.has(bytes) && b.n.engine.Charge(bytes) }

// has reports whether connections may use so many bytes more.
func (b connBudget) has(bytes int64) bool {
	e := b.n.engine
	return e.Outside()-b.n.overhead.Load()+e.Replies()+bytes <= e.MaxBytes()/connShare
}

func (b connBudget) Refund(bytes int64) { b.n.engine.Refund(bytes) }

// connFloor returns the floor of each loop.
func connFloor(memory int64, loops int) int64 {
	return min(maxFloor, memory/floorShare/int64(loops))
}

// FitsMemory reports whether a node with that many loops can run in memory bytes, of which the
// process takes overhead for itself.
func FitsMemory(memory, overhead int64, loops int) bool {
	outside := overhead + int64(loops)*connFloor(memory, loops)
	return memory >= engine.SmallestLimit(engine.ShardsFor(loops, memory), memory, outside)
}

// MaxMemory returns the present limit.
func (n *Node) MaxMemory() int64 { return n.engine.MaxBytes() }

// SetMaxMemory changes the limit, as CONFIG SET maxmemory does.
func (n *Node) SetMaxMemory(bytes int64) error { return n.setMemory(bytes) }

// HeapMemory returns about how much of the Go heap counts towards the limit beside Overhead.
func (n *Node) HeapMemory() int64 {
	total := n.lists.Load()
	for _, w := range n.workers {
		total += w.heap.Load()
	}
	return total
}

// heapBudget charges what handlers keep. HeapMemory includes what of it is in the Go heap.
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

// StageReply begins a part of a reply, see exec.Gathered.
func (b heapBudget) StageReply(bytes int) (engine.Staged, error) {
	if !connBudget(b).has(int64(bytes)) {
		return engine.Staged{}, engine.ErrMemory
	}
	return b.n.engine.StageReply(bytes)
}

// SetOverhead changes how much of the limit the process takes for itself. It returns false if there
// is not that much left; then the previous amount holds. Calls must not overlap.
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

// Charge and Refund let a proxy in this process take the node's memory for its connections'
// buffers.
func (n *Node) Charge(bytes int64) bool { return connBudget{n}.Charge(bytes) }

// Refund returns what Charge took.
func (n *Node) Refund(bytes int64) { connBudget{n}.Refund(bytes) }

// chargeParser charges what the parser keeps of a long request, which can be three times the
// request, what an upload keeps of its other arguments, and commands that are answered later.
func (cn *conn) chargeParser() {
	n := cn.parser.Overhead()
	if n > 0 {
		cn.parser.Release()
		n = cn.parser.Overhead()
	}
	if cn.Upload != nil {
		n += cn.Upload.Kept
	}
	cn.Socket.SetOther(connMemory + n + cn.State.QueuedBytes() + cn.jobs.charge)
}

// OnStarve closes a connection whose request finds no memory. The client gets the error that a
// write would get.
func (cn *conn) OnStarve(*netloop.Conn) []byte {
	cn.Closing = true
	cn.worker.Count.Fail(0, exec.ErrOOM)
	return []byte("-" + exec.ErrOOM + "\r\n")
}
