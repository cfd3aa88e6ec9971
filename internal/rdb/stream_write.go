package rdb

import (
	"encoding/binary"
	"errors"
	"math"
)

// StreamWriter writes the payload of a stream in pieces. Its methods are called in the order of the
// payload, and each part as often as the part that it belongs to has said:
//
//	Entry … │ Info │ Group, Pending …, Consumers, (Consumer, PendingID …) … │ Group … │ End
//
// Entries go into nodes as Redis makes them by default, below 4 KiB and up to 100 entries each, so a
// stream that has lost no entry has the payload that Redis makes with rdbcompression no. The payload
// begins with the number of nodes, so its head comes last, from End. What is written is kept until
// Flush; only a long entry goes to Out at once.
type StreamWriter struct {
	// Out takes bytes of the payload behind its head, which are valid until it returns. While it is nil
	// all is kept. Its first error is that of Flush and End.
	Out func(piece []byte) error
	// Actives has consumers keep the time when they were active, which servers before Redis 7.2
	// do not read. Without it that time becomes the time when they were seen.
	Actives bool

	err   error
	out   []byte // for Out
	sum   uint64 // of what Out has got
	size  int
	nodes uint64
	node  nodeWriter
}

// writePiece is about how many bytes Out gets at once.
const writePiece = 32 << 10

// ErrNodeTooLong is the error for an entry that is longer than a listpack can be.
var ErrNodeTooLong = errors.New("an entry of a stream is too long")

// Kept is how many bytes Flush would give to Out.
func (w *StreamWriter) Kept() int { return len(w.out) }

// Flush gives Out what was kept.
func (w *StreamWriter) Flush() error {
	w.flush(1)
	return w.err
}

// Entry writes an entry. IDs ascend.
func (w *StreamWriter) Entry(x StreamEntry) {
	text := 0
	for _, s := range x.Strings {
		text += len(s)
	}
	long := text >= nodeBytes || len(x.Strings) >= nodeBytes // no other entry comes into its node
	if w.node.entries > 0 && (long || !w.node.hasRoom(text)) {
		w.endNode()
	}
	if long {
		w.longNode(&x)
	} else {
		w.node.add(&x)
	}
}

// endNode writes the node that is open, if there is one.
func (w *StreamWriter) endNode() {
	if w.node.entries == 0 {
		return
	}
	pack := w.node.end()
	w.beginNode(w.node.id, len(pack))
	w.write(pack)
}

func (w *StreamWriter) beginNode(id StreamID, size int) {
	w.nodes++
	w.out = appendLength(w.out, streamIDSize)
	w.id(id)
	w.number(uint64(size))
}

// longNode writes a node with one entry, without a copy of it in memory.
func (w *StreamWriter) longNode(x *StreamEntry) {
	size := packSize{bytes: listpackHead + 1}
	writeMaster(&size, x)
	writeEntry(&size, x.ID, x, true)
	if size.bytes > math.MaxUint32 {
		if w.err == nil {
			w.err = ErrNodeTooLong
		}
		return
	}
	w.beginNode(x.ID, size.bytes)
	var head [listpackHead]byte
	putPackHead(head[:], size.bytes, size.items)
	w.write(head[:])
	writeMaster(w, x)
	writeEntry(w, x.ID, x, true)
	w.write([]byte{packEnd})
}

// putInt writes an item of a long entry's listpack.
func (w *StreamWriter) putInt(n int64) {
	w.out = appendPackInt(w.out, n)
	w.flush(writePiece)
}

// putText writes an item of a long entry's listpack.
func (w *StreamWriter) putText(s []byte) {
	if len(s) < nodeBytes {
		w.out = appendPackString(w.out, s)
		w.flush(writePiece)
		return
	}
	w.out = appendPackHead(w.out, len(s))
	w.write(s)
	w.out = appendBacklen(w.out, packHeadSize(len(s))+len(s))
}

// write writes bytes, which may be many.
func (w *StreamWriter) write(b []byte) {
	for len(b) > 0 && w.err == nil {
		n := min(len(b), writePiece)
		w.out = append(w.out, b[:n]...)
		b = b[n:]
		w.flush(writePiece)
	}
}

// flush gives Out what there is, if that is enough.
func (w *StreamWriter) flush(enough int) {
	if len(w.out) < enough || w.Out == nil {
		return
	}
	w.sum = Sum(w.sum, w.out)
	w.size += len(w.out)
	if w.err == nil {
		w.err = w.Out(w.out)
	}
	w.out = w.out[:0]
}

// number writes a number as lengths are written.
func (w *StreamWriter) number(n uint64) { w.out = appendLength(w.out, n) }

func (w *StreamWriter) numbers(id StreamID) {
	w.number(id.Ms)
	w.number(id.Seq)
}

// id writes an ID as it stands in a tree of Redis.
func (w *StreamWriter) id(id StreamID) {
	w.out = binary.BigEndian.AppendUint64(w.out, id.Ms)
	w.out = binary.BigEndian.AppendUint64(w.out, id.Seq)
}

func (w *StreamWriter) millis(at int64) { w.out = binary.LittleEndian.AppendUint64(w.out, uint64(at)) }

// Info writes what comes behind the entries.
func (w *StreamWriter) Info(i StreamInfo) {
	w.endNode()
	w.number(uint64(i.Len))
	w.numbers(i.Last)
	w.numbers(i.First)
	w.numbers(i.MaxDeleted)
	w.number(uint64(i.Added))
	w.number(uint64(i.Groups))
}

// Group begins a group. Its pending entries follow, then Consumers.
func (w *StreamWriter) Group(g StreamGroup) {
	w.out = appendString(w.out, g.Name)
	w.numbers(g.Last)
	w.number(uint64(g.Read))
	w.number(uint64(g.Pending))
}

// Pending writes a pending entry of the group. IDs ascend. The payload says later whose it is.
func (w *StreamWriter) Pending(p StreamPending) {
	w.id(p.ID)
	w.millis(p.Delivered)
	w.number(uint64(p.Count))
}

// Consumers writes how many consumers the group has.
func (w *StreamWriter) Consumers(n int) {
	w.number(uint64(n))
}

// Consumer begins a consumer. The IDs of its pending entries follow.
func (w *StreamWriter) Consumer(c StreamConsumer) {
	w.out = appendString(w.out, c.Name)
	w.millis(c.Seen)
	if w.Actives {
		w.millis(c.Active)
	}
	w.number(uint64(c.Pending))
}

// PendingID writes the ID of a pending entry of the consumer. IDs ascend.
func (w *StreamWriter) PendingID(id StreamID) {
	w.id(id)
}

// End completes the payload, and returns the head, which comes before all that Out has got.
func (w *StreamWriter) End() (head []byte, err error) {
	w.flush(1)
	code, version := byte(typeStream2), uint16(versionPlain)
	if w.Actives {
		code, version = typeStream3, versionActives
	}
	head = appendLength([]byte{code}, w.nodes)
	w.out = appendFoot(w.out, join(Sum(0, head), w.sum, w.size), version)
	w.flush(1)
	return head, w.err
}
