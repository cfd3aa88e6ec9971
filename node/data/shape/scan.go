package shape

import (
	"math/bits"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A scan goes through the blocks of a table, or the buckets of a ranked tree's index, in the order of
// their hashes with the bits reversed. What has one block, or came from it, is in one piece of that
// order, whatever the number of blocks is. A cursor, as clients have it, is a place in the order; says by
// the value's salt of which order; and how often the scan has begun anew:
//
//	place │ salt │ restarts
//	  32     17      3        bits: clients in JavaScript have 53
//
// An element that stays from the first call to the last is seen, however the value grows and shrinks
// meanwhile, in this node or another one. It may be seen twice. The order is another one if the value was
// packed in between, or is a copy that another node serves now. Then the scan begins anew. So it does if
// the key has another value; a scan of a key that often gets another one would never end, so it goes on
// after some restarts.
const (
	scanEnd     = 1 << placeBits // behind all places
	placeBits   = 32
	saltBits    = 17
	restartBits = 3

	maxRestarts = 1<<restartBits - 1
	cursorBits  = placeBits + saltBits + restartBits
)

// scanCursor is a cursor, decoded for a value.
type scanCursor struct {
	place, salt, restarts uint64
}

// cursorIn decodes a client's cursor for a value. false: it is none, so the scan is at its end.
func cursorIn(v engine.Parts, cursor uint64) (c scanCursor, ok bool) {
	c.salt = uint64(v.Salt()) & (1<<saltBits - 1)
	if cursor == 0 {
		return c, true
	}
	c.place = cursor & (scanEnd - 1)
	c.restarts = cursor >> (placeBits + saltBits)
	if cursor>>placeBits&(1<<saltBits-1) != c.salt && c.restarts < maxRestarts {
		c.place = 0
		c.restarts++
	}
	return c, cursor>>cursorBits == 0
}

func (c scanCursor) encode() uint64 {
	return (c.restarts<<saltBits|c.salt)<<placeBits | c.place
}

// scan calls visit for blocks of a plane, at least one, from a cursor on, and returns the cursor where to
// go on: 0 at the end. The first cursor is 0. full is asked behind each block: it gets how many entries
// visit has passed without a call of the client's function, and one for the block itself.
func scan(
	v engine.Parts, plane int, cursor uint64, full func(passed int) bool, visit func(number int) (passed int),
) (next uint64) {
	n := v.Len(plane)
	c, ok := cursorIn(v, cursor)
	if n == 0 || !ok {
		return 0
	}
	for {
		number, after := blockAt(c.place, n)
		passed := visit(number)
		if after == 0 {
			return 0
		}
		if c.place = after; full(passed + 1) {
			return c.encode()
		}
	}
}

// blockAt is the block of n in which a scan goes on at a place, and the place behind that block, 0 if it
// is the last one in the order.
func blockAt(place uint64, n int) (number int, next uint64) {
	level := bits.Len(uint(n)) - 1
	number = bucket(uint64(bits.Reverse32(uint32(place))), n)
	depth := level
	if number&(1<<level-1) < n-1<<level {
		depth++ // it has been split
	}
	size := uint64(1) << (placeBits - depth)
	if next = place&^(size-1) + size; next >= scanEnd {
		next = 0
	}
	return number, next
}
