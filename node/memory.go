package node

import (
	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// What connections take of the node's one budget. The engine's limit is charged by
// netloop before it makes a buffer, and the engine evicts for that as for a value.

const (
	// connMemory is what a connection takes in the Go heap without any buffer.
	connMemory = 2 << 10
	// maxFloor is what the connections of a loop may always have, whatever the data
	// takes: buffers of 4 KiB for as many as have their turn in an iteration. Under
	// noeviction the data takes all the rest.
	maxFloor = 4 << 20
	// floorShare is the largest part of the limit that goes to the floors of all loops.
	floorShare = 16
)

// connFloor is the floor of each loop.
func connFloor(memory int64, loops int) int64 {
	return min(maxFloor, memory/floorShare/int64(loops))
}

// room makes room for n more bytes of replies. False: there is no memory for them, and
// the connection is closed. Other connections' values may have been evicted, but no item
// of the partition that is locked.
func (r *request) room(n int) bool {
	if cap(r.out)-len(r.out) >= n {
		return true
	}
	out, ok := r.conn.socket.Grow(r.out, n)
	r.out = out
	if !ok {
		r.conn.closing = true // what follows in the input is not executed
	}
	return ok
}

// lineRoom is room for a reply without a value.
const lineRoom = 64

// chargeParser counts what the parser has for a long request, which may be three times
// the request, and an upload for its other arguments.
func (cn *conn) chargeParser() {
	n := cn.parser.Overhead()
	if n > 0 {
		cn.parser.Parse(nil) // lets go of what it has for a request that is over
		n = cn.parser.Overhead()
	}
	if cn.upload != nil {
		n += cn.upload.kept
	}
	cn.socket.SetOther(connMemory + n)
}

// OnStarve ends a connection whose request cannot be taken in: the client is told what a
// write would be told.
func (cn *conn) OnStarve(*netloop.Conn) []byte {
	cn.closing = true
	cn.worker.count.errors++
	return []byte("-" + errOOM + "\r\n")
}
