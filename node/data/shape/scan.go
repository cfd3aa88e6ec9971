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
// go on: 0 at the end. The first cursor is 0. visit returns what it has visited of a span. full is asked
// behind each block: it gets how many entries visit has passed without a call of the client's function, and
// one for the block itself.
func scan(
	v engine.Parts, plane int, cursor uint64, full func(passed int) bool,
	visit func(number int, s span) (visited span, passed int),
) (next uint64) {
	n := v.Len(plane)
	c, ok := cursorIn(v, cursor)
	if n == 0 || !ok {
		return 0
	}
	for room, first := scanRoom, true; ; first = false {
		number, after := blockAt(c.place, n)
		s := span{from: c.place, to: after, room: room, first: first}
		if after == 0 {
			s.to = scanEnd
		}
		s.whole = c.place&(placesOf(number, n)-1) == 0
		visited, passed := visit(number, s)
		if visited.to < s.to {
			c.place = visited.to
			return c.encode()
		}
		if after == 0 {
			return 0
		}
		if c.place, room = after, visited.room; full(passed + 1) {
			return c.encode()
		}
	}
}

// blockAt is the block of n in which a scan goes on at a place, and the place behind that block, 0 if it
// is the last one in the order.
func blockAt(place uint64, n int) (number int, next uint64) {
	number = bucket(uint64(bits.Reverse32(uint32(place))), n)
	size := placesOf(number, n)
	if next = place&^(size-1) + size; next >= scanEnd {
		next = 0
	}
	return number, next
}

// placesOf is how many places a block of n has.
func placesOf(number, n int) uint64 { return 1 << (placeBits - depthOf(number, n)) }

// scanRoom is how many bytes a call copies of the elements of blocks that have strings which are parts of
// their own. All elements of such a block count, by what its caller would copy of each; those of other blocks
// do not. Without room a call ends within a block, at a place as if there were more blocks. So none keeps the
// shard locked for the length of a block's strings. Elements of one place, which is 32 bits of a hash, go
// together.
const scanRoom = 64 << 10

// span is what a scan visits of a block: places from one on, up to another.
type span struct {
	from, to uint64
	whole    bool // the span is all of the block
	first    bool // of its call, which visits something of it, whatever the room is
	room     int  // bytes that may still be copied, of blocks with long strings
}

// has reports whether the element of a hash is in the span.
func (s *span) has(h uint32) bool { return s.from <= orderOf(h) && orderOf(h) < s.to }

// orderOf is where a hash stands in the order.
func orderOf(h uint32) uint64 { return uint64(bits.Reverse32(h)) }

// cut shortens a span to what there is room for. Its caller adds all elements of the block and calls narrow,
// until that reports true: six times at most. What the elements weigh is counted in bins of equal width. If
// the first bin of a call that has any is too heavy, it is divided into bins.
type cut struct {
	span
	begin, end uint64 // of the bins
	shift      int    // a bin has 1<<shift places
	weights    [1 << cutBits]int
}

const cutBits = 6

func (s span) cut() (c cut) {
	c.span = s
	c.divide(s.from, s.to)
	return c
}

func (c *cut) divide(begin, end uint64) {
	c.begin, c.end, c.shift = begin, end, max(0, bits.Len64(end-begin-1)-cutBits)
	clear(c.weights[:])
}

// add counts an element and what it weighs, in bytes.
func (c *cut) add(h uint32, weight int) {
	if at := orderOf(h); c.begin <= at && at < c.end {
		c.weights[(at-c.begin)>>c.shift] += 1 + weight
	}
}

// narrow reports whether the span has been shortened. If not, all elements are to be added again.
func (c *cut) narrow() (done bool) {
	for i, weight := range c.weights {
		if weight <= c.room {
			c.first = c.first && weight == 0
			c.room -= weight
			continue
		}
		at := c.begin + uint64(i)<<c.shift
		switch {
		case !c.first:
			c.to, c.whole = at, false
		case c.shift == 0:
			c.to, c.whole, c.room = at+1, false, 0
		default:
			c.divide(at, min(at+1<<c.shift, c.end))
			return false
		}
		return true
	}
	return true
}
