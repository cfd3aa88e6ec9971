package rdb

import (
	"bytes"
	"encoding/binary"
)

// items takes the numbers and strings of a listpack.
type items interface {
	putInt(n int64)
	putText(s []byte)
}

// writeMaster writes the first items of a node whose first entry is x.
func writeMaster(to items, x *StreamEntry) {
	to.putInt(1) // entries, which nodeWriter counts
	to.putInt(0)
	to.putInt(int64(len(x.Strings) / 2))
	for i := 0; i < len(x.Strings); i += 2 {
		to.putText(x.Strings[i])
	}
	to.putInt(0)
}

// writeEntry writes an entry of a node with this ID. same: it has the names of the node's first entry.
func writeEntry(to items, node StreamID, x *StreamEntry, same bool) {
	flags, count := int64(0), 4+len(x.Strings)
	if same {
		flags, count = entrySame, 3+len(x.Strings)/2
	}
	to.putInt(flags)
	to.putInt(int64(x.ID.Ms - node.Ms))
	to.putInt(int64(x.ID.Seq - node.Seq))
	if !same {
		to.putInt(int64(len(x.Strings) / 2))
	}
	for i, s := range x.Strings {
		if i%2 != 0 || !same {
			to.putText(s)
		}
	}
	to.putInt(int64(count))
}

// packSize finds how long a listpack is.
type packSize struct{ bytes, items int }

func (s *packSize) putInt(n int64) {
	var memory [maxPackInt]byte
	s.bytes += len(appendPackInt(memory[:0], n))
	s.items++
}

func (s *packSize) putText(b []byte) {
	s.bytes += packStringSize(b)
	s.items++
}

// nodeWriter makes a node in memory. Its entries are short.
type nodeWriter struct {
	pack    []byte // without its last byte
	count   int    // items in it
	entries int
	id      StreamID // of the first entry
	nameEnd int      // where its names end in pack
	name    []byte   // scratch
}

const (
	nodeBytes   = 4096
	nodeEntries = 100

	// Where a node's listpack has the number of its entries, and of the first one's fields.
	entriesAt = listpackHead
	fieldsAt  = listpackHead + 2 + 2
)

func (n *nodeWriter) putInt(i int64) {
	n.pack = appendPackInt(n.pack, i)
	n.count++
}

func (n *nodeWriter) putText(s []byte) {
	n.pack = appendPackString(n.pack, s)
	n.count++
}

// hasRoom reports whether an entry with so much text goes into the node, by Redis's rule.
func (n *nodeWriter) hasRoom(text int) bool {
	return n.entries < nodeEntries && len(n.pack)+1+text < nodeBytes
}

// add adds an entry.
func (n *nodeWriter) add(x *StreamEntry) {
	if n.entries == 0 {
		n.pack = append(n.pack[:0], make([]byte, listpackHead)...)
		n.id, n.count = x.ID, 0
		writeMaster(n, x)
		n.nameEnd = len(n.pack) - 2
		writeEntry(n, n.id, x, true)
	} else {
		writeEntry(n, n.id, x, n.hasNames(x.Strings))
	}
	n.entries++
	n.pack[entriesAt] = byte(n.entries)
}

// hasNames reports whether an entry has the names of the first one.
func (n *nodeWriter) hasNames(all [][]byte) bool {
	rest := n.pack[fieldsAt:n.nameEnd]
	n.name = appendPackInt(n.name[:0], int64(len(all)/2))
	for i := 0; ; i += 2 {
		if !bytes.HasPrefix(rest, n.name) {
			return false
		}
		if rest = rest[len(n.name):]; i == len(all) {
			return len(rest) == 0
		}
		n.name = appendPackString(n.name[:0], all[i])
	}
}

// end completes the node, and returns its listpack. The next entry begins another node.
func (n *nodeWriter) end() []byte {
	n.pack = append(n.pack, packEnd)
	putPackHead(n.pack, len(n.pack), n.count)
	n.entries = 0
	return n.pack
}

// putPackHead writes the head of a listpack of so many bytes and items.
func putPackHead(dst []byte, size, items int) {
	binary.LittleEndian.PutUint32(dst, uint32(size))
	binary.LittleEndian.PutUint16(dst[4:], uint16(min(items, countUnknown)))
}
