package streams

import (
	"encoding/binary"
	"math/bits"
)

// block is a sequence of entries in the order of their IDs, in one piece of memory. Entries with the same
// field names as the block have their values only.
//
//	count │ live │ used │ dead │ away │ first ID │ fields │ names' bytes │ names │ entry │ entry ... free
//	  1      1      2      2      1+1     16         2           2
//
// An entry:
//
//	size and kind │ ms │ seq │ what the kind says
//	   uvarint     uvarint
//
// ms is the distance from the first ID's, seq that from the first ID's if ms is 0, otherwise the number
// itself. No entry's ID is below the first ID; that of the first entry may be above it.
type block []byte

const (
	blockHead   = 28
	maxBlock    = 4000
	mostInBlock = 100 // entries, with those that are dead
)

// The kinds of entries. The lowest two bits of an entry's first number say which, the others how many bytes
// are behind that number.
const (
	kindNames = iota // a payload
	kindSame         // the values: the names are the block's
	kindAway         // the number of the part that has the payload, and those of its strings
	kindDead
	kindBits = 2
)

// initBlock makes an empty block of b.
func initBlock(b []byte, first ID) block {
	clear(b[:blockHead])
	binary.LittleEndian.PutUint64(b[8:], first.Ms)
	binary.LittleEndian.PutUint64(b[16:], first.Seq)
	block(b).setUsed(blockHead)
	return b
}

func (b block) count() int     { return int(b[0]) }
func (b block) setCount(n int) { b[0] = byte(n) }
func (b block) live() int      { return int(b[1]) }
func (b block) setLive(n int)  { b[1] = byte(n) }
func (b block) used() int      { return int(binary.LittleEndian.Uint16(b[2:])) }
func (b block) setUsed(n int)  { binary.LittleEndian.PutUint16(b[2:], uint16(n)) }
func (b block) dead() int      { return int(binary.LittleEndian.Uint16(b[4:])) }
func (b block) setDead(n int)  { binary.LittleEndian.PutUint16(b[4:], uint16(n)) }
func (b block) hasAway() bool  { return b[6] != 0 }
func (b block) setAway()       { b[6] = 1 }
func (b block) first() ID {
	return ID{binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
}
func (b block) fields() int   { return int(binary.LittleEndian.Uint16(b[24:])) }
func (b block) begin() int    { return blockHead + int(binary.LittleEndian.Uint16(b[26:])) } // of the entries
func (b block) names() []byte { return b[blockHead:b.begin()] }

// setNames gives a block without names those of a payload. There is room.
func (b block) setNames(payload []byte, size int) {
	used := b.used()
	copy(b[blockHead+size:], b[blockHead:used])
	n, rest, _ := fieldsOf(payload)
	at := blockHead
	for i := range 2 * n {
		_, _, behind, _ := coded(rest)
		if i%2 == 0 {
			at += copy(b[at:], rest[:len(rest)-len(behind)])
		}
		rest = behind
	}
	binary.LittleEndian.PutUint16(b[24:], uint16(n))
	binary.LittleEndian.PutUint16(b[26:], uint16(size))
	b.setUsed(used + size)
}

// namesIn is how many bytes the names in a payload take.
func namesIn(payload []byte) (size int) {
	n, rest, _ := fieldsOf(payload)
	for i := range 2 * n {
		_, _, behind, _ := coded(rest)
		if i%2 == 0 {
			size += len(rest) - len(behind)
		}
		rest = behind
	}
	return size
}

// add appends an entry with a payload, as far as there is room, and reports whether there was. body is what
// a part has of the payload, if that does not stand in the block. scratch has room for a payload and an
// entry's head.
func (b block) add(id ID, payload, body, scratch []byte) (fits bool) {
	kind, names := kindAway, 0
	if body == nil {
		kind = kindSame
		if b.fields() == 0 {
			names = namesIn(payload)
			if b.used()+len(payload) > len(b) {
				return false
			}
			b.setNames(payload, names)
		}
		same := false
		if body, same = b.values(scratch[:0], payload); !same {
			body, kind = payload, kindNames
		}
	}
	var head [maxEntryHead]byte
	h := appendHead(head[:0], id, b.first(), kind, len(body))
	if b.count() == mostInBlock || b.used()+len(h)+len(body) > len(b) {
		if names > 0 {
			b.dropNames()
		}
		return false
	}
	b.push(h, body, kind)
	return true
}

// dropNames undoes setNames.
func (b block) dropNames() {
	begin, used := b.begin(), b.used()
	copy(b[blockHead:], b[begin:used])
	binary.LittleEndian.PutUint32(b[24:], 0)
	b.setUsed(used - begin + blockHead)
}

// values appends the values of a payload to dst. ok is false if its names are not the block's.
func (b block) values(dst, payload []byte) (values []byte, ok bool) {
	n, rest, _ := fieldsOf(payload)
	if n != b.fields() {
		return dst, false
	}
	names := b.names()
	for range n {
		_, _, behind, _ := coded(rest)
		name := rest[:len(rest)-len(behind)]
		if len(names) < len(name) || string(names[:len(name)]) != string(name) {
			return dst, false
		}
		names, rest = names[len(name):], behind
		_, _, behind, _ = coded(rest)
		dst = append(dst, rest[:len(rest)-len(behind)]...)
		rest = behind
	}
	return dst, true
}

// packedEntry is an entry of a block: where it stands, and what it has.
type packedEntry struct {
	id   ID
	kind int
	at   int    // where it begins
	end  int    // and ends
	body []byte // what the kind says
}

// entry is the entry that begins at an offset.
func (b block) entry(at int) (x packedEntry) {
	head, n := uvarint(b[at:])
	begin := at + n
	x.at, x.end, x.kind = at, begin+int(head>>kindBits), int(head&(1<<kindBits-1))
	ms, n := uvarint(b[begin:])
	begin += n
	seq, n := uvarint(b[begin:])
	begin += n
	x.id = b.first()
	if ms == 0 {
		x.id.Seq += seq
	} else {
		x.id = ID{x.id.Ms + ms, seq}
	}
	x.body = b[begin:x.end:x.end]
	return x
}

// uvarint is binary.Uvarint, but faster for small numbers.
func uvarint(b []byte) (n uint64, size int) {
	if b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

func uvarintLen(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

// appendHead appends what an entry has in front of its body, which has size bytes.
func appendHead(dst []byte, id, first ID, kind, size int) []byte {
	var numbers [2 * binary.MaxVarintLen64]byte
	ids := numbers[:0]
	if ms := id.Ms - first.Ms; ms == 0 {
		ids = binary.AppendUvarint(append(ids, 0), id.Seq-first.Seq)
	} else {
		ids = binary.AppendUvarint(binary.AppendUvarint(ids, ms), id.Seq)
	}
	dst = binary.AppendUvarint(dst, uint64(len(ids)+size)<<kindBits|uint64(kind))
	return append(dst, ids...)
}

// maxEntryHead is the most that an entry has in front of its body.
const maxEntryHead = 3 * binary.MaxVarintLen64

// push appends an entry. There is room.
func (b block) push(head, body []byte, kind int) {
	used := b.used()
	used += copy(b[used:], head)
	b.setUsed(used + copy(b[used:], body))
	b.setCount(b.count() + 1)
	b.setLive(b.live() + 1)
	if kind == kindAway {
		b.setAway()
	}
}

// find is the entry with an ID that is not dead.
func (b block) find(id ID) (x packedEntry, found bool) {
	for at, end := b.begin(), b.used(); at < end; at = x.end {
		if x = b.entry(at); !x.id.less(id) {
			return x, x.id == id && x.kind != kindDead
		}
	}
	return x, false
}

// last is the last entry, dead or not, of a block that has one.
func (b block) last() (x packedEntry) {
	for at, end := b.begin(), b.used(); at < end; at = x.end {
		x = b.entry(at)
	}
	return x
}

// kill notes that an entry is dead.
func (b block) kill(x *packedEntry) {
	b[x.at] |= kindDead
	b.setLive(b.live() - 1)
	b.setDead(b.dead() + x.end - x.at)
}

// compact copies the live entries of a block to one whose first ID is not above theirs, as far as there is
// room, and reports whether there was for all. An empty block gets the names, too.
func (b block) compact(to block) (fits bool) {
	if to.count() == 0 && to.fields() == 0 {
		copy(to[24:], b[24:b.begin()])
		to.setUsed(b.begin())
	}
	same := string(to.names()) == string(b.names()) && to.fields() == b.fields()
	var head [maxEntryHead]byte
	var whole [maxInside]byte
	for at, end := b.begin(), b.used(); at < end; {
		x := b.entry(at)
		at = x.end
		if x.kind == kindDead {
			continue
		}
		if x.kind == kindSame && !same {
			x.body, x.kind = b.payload(whole[:0], x.body), kindNames
		}
		h := appendHead(head[:0], x.id, to.first(), x.kind, len(x.body))
		if to.used()+len(h)+len(x.body) > len(to) || to.count() == mostInBlock {
			return false
		}
		to.push(h, x.body, x.kind)
	}
	return true
}

// payload appends the payload of an entry that has values only.
func (b block) payload(dst, values []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.fields()))
	names := b.names()
	for range b.fields() {
		_, _, behind, _ := coded(names)
		dst = append(dst, names[:len(names)-len(behind)]...)
		names = behind
		_, _, behind, _ = coded(values)
		dst = append(dst, values[:len(values)-len(behind)]...)
		values = behind
	}
	return dst
}

// eachPayload calls f for the payloads of the entries, none of which is in a part. scratch has room for one.
func (b block) eachPayload(scratch []byte, f func(id ID, payload []byte)) {
	for at, end := b.begin(), b.used(); at < end; {
		x := b.entry(at)
		switch at = x.end; x.kind {
		case kindSame:
			f(x.id, b.payload(scratch[:0], x.body))
		case kindNames:
			f(x.id, x.body)
		}
	}
}

// check reports whether bytes of any content are a block. awayToo: entries may be in parts.
func (b block) check(awayToo bool) bool {
	if len(b) < blockHead || b.used() > len(b) || b.begin() > b.used() || b.count() > mostInBlock || b[6] > 1 || b[7] != 0 {
		return false
	}
	names := b.names()
	for range b.fields() {
		_, own, rest, ok := coded(names)
		if !ok || own >= 0 {
			return false
		}
		names = rest
	}
	count, live, dead, last := 0, 0, 0, b.first()
	for at := b.begin(); at < b.used(); count++ {
		x, ok := b.checkEntry(at, awayToo)
		if !ok || x.id.less(last) || count > 0 && x.id == last {
			return false
		}
		if last = x.id; x.kind == kindDead {
			dead += x.end - x.at
		} else {
			live++
		}
		at = x.end
	}
	return len(names) == 0 && count == b.count() && live == b.live() && dead == b.dead()
}

// checkEntry is entry of bytes of any content.
func (b block) checkEntry(at int, awayToo bool) (x packedEntry, ok bool) {
	r := reader{rest: b[at:b.used()]}
	head := r.uvarint()
	size := int(head >> kindBits)
	if r.bad || size > len(r.rest) {
		return x, false
	}
	r.rest = r.rest[:size]
	ms, seq := r.uvarint(), r.uvarint()
	if r.bad || ms == 0 && b.first().Seq+seq < seq || b.first().Ms+ms < ms {
		return x, false
	}
	x = b.entry(at)
	switch x.kind {
	case kindNames:
		return x, checkPayload(x.body)
	case kindSame:
		rest := x.body
		for range b.fields() {
			var own int
			if _, own, rest, ok = coded(rest); !ok || own >= 0 {
				return x, false
			}
		}
		return x, len(rest) == 0 && b.fields() > 0 && uvarintLen(uint64(b.fields()))+len(b.names())+len(x.body) <= maxInside
	case kindAway:
		return x, awayToo && len(x.body) >= awayBody && len(x.body) == awayBody+int(x.body[4])*partNumber
	}
	return x, true
}

// partNumber is how many bytes the number of a part takes, and awayBody the body of an entry in a part
// that has no strings of its own: the part's number, and how many numbers of strings follow.
const (
	partNumber = 4
	awayBody   = partNumber + 1
)

// reader reads numbers and strings of bytes of any content. When they are malformed, it returns zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) fail() {
	r.bad, r.rest = true, nil
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) varint() int64 {
	n := r.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) id() ID {
	ms := r.uvarint()
	return ID{ms, r.uvarint()}
}

func (r *reader) bytes() (s []byte) {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	s, r.rest = r.rest[:n:n], r.rest[n:]
	return s
}
