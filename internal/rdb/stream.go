package rdb

import "cmp"

// A stream's entries lie in nodes. A node is a string with the ID of the node's first entry, in
// big-endian order, and a string with a listpack:
//
//	master  entries, deleted entries, n, name …, 0
//	entry   flags, ms, seq, value …, items                    with the names of the master
//	        flags, ms, seq, n, name, value, …, items          with names of its own
//
// The time and sequence number of an entry are its distances from those of the node's ID. Its last
// number counts the numbers and strings before it. Behind the nodes come, as lengths are written
// unless said otherwise:
//
//	15 19 21  length │ last ID, 2
//	   19 21  first ID, 2 │ greatest deleted ID, 2 │ entries ever added
//	15 19 21  groups │ group …
//	group     name, a string │ last ID, 2 │ entries read (19 21) │ pending │ pending entry …
//	          │ consumers │ consumer …
//	pending   ID, 16 big-endian bytes │ delivered at, 8 bytes │ deliveries
//	consumer  name, a string │ seen at, 8 bytes │ active at, 8 bytes (21) │ pending │ ID, 16 …

// Flags of an entry.
const (
	entryDeleted = 1 << iota
	entrySame    // the entry has the master's names
)

const streamIDSize = 16

// StreamID is the ID of an entry of a stream.
type StreamID struct{ Ms, Seq uint64 }

// Compare is negative if id is below other, 0 if they are equal, else positive.
func (id StreamID) Compare(other StreamID) int {
	return cmp.Or(cmp.Compare(id.Ms, other.Ms), cmp.Compare(id.Seq, other.Seq))
}

// StreamEntry is an entry of a stream. Names and values of its fields alternate.
type StreamEntry struct {
	ID      StreamID
	Strings [][]byte
}

// StreamInfo is what a stream has beside its entries and groups.
type StreamInfo struct {
	Len        int      // entries
	First      StreamID // of the entries; 0-0 if there are none
	Last       StreamID // ever added
	MaxDeleted StreamID
	Added      int64 // entries ever added
	Groups     int
}

// ReadUnknown says that nobody knows how many entries a group has read.
const ReadUnknown = -1

// StreamGroup is a consumer group.
type StreamGroup struct {
	Name      []byte
	Last      StreamID // delivered
	Read      int64    // entries, or ReadUnknown
	Pending   int      // entries
	Consumers int
}

// StreamConsumer is a consumer of a group. Its times are unix milliseconds. Active is negative if it
// was never active.
type StreamConsumer struct {
	Name         []byte
	Seen, Active int64
	Pending      int // entries
}

// StreamPending is an entry that was delivered and not acknowledged.
type StreamPending struct {
	ID        StreamID
	Consumer  int   // its place among the consumers of the group
	Delivered int64 // unix milliseconds
	Count     int64 // deliveries
}

// readOf is how many entries a group has read whose last ID is id, in a stream that has never lost
// an entry. Type 15 does not say it, and Redis finds it out in this way.
func (i *StreamInfo) readOf(id StreamID) int64 {
	switch toLast := id.Compare(i.Last); {
	case i.Added == 0:
		return 0
	case toLast == 0:
		return i.Added
	case toLast > 0:
		return ReadUnknown
	}
	switch toFirst := id.Compare(i.First); {
	case toFirst < 0:
		return 0
	case toFirst == 0:
		return 1
	}
	return ReadUnknown
}
