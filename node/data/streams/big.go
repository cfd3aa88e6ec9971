package streams

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// The planes of a big stream.
const (
	planeBlocks = iota
	planeAway
	planeLeaves
	planeNodes
)

// The own bytes of a big stream.
//
//	entries │ last ID │ max deleted ID │ added │ tail block │ next group │ groups │ gone │ ordered map
//	   8        16          16             8         4            4          4        4         64
const (
	ownLast       = 8
	ownMaxDeleted = ownLast + rawIDLen
	ownAdded      = ownMaxDeleted + rawIDLen
	ownTail       = ownAdded + 8
	ownNextGroup  = ownTail + 4
	ownGroups     = ownNextGroup + 4
	ownGone       = ownGroups + 4
	ownMap        = ownGone + 4
	ownSize       = ownMap + shape.OrderedOwn
)

// A key of the ordered map begins with what it is. Numbers are big-endian. So groups and consumers are in
// the order of their names, and what is pending in that of the IDs.
const (
	keyBlock    = iota + 1 // first ID ─> number of the block
	keyName                // name of a group ─> its number
	keyGroup               // number ─> group
	keyOf                  // group, name of a consumer ─> its number
	keyConsumer            // group, number ─> consumer
	keyPending             // group, ID ─> what is pending
	keyOwed                // group, consumer, ID ─> nothing
	keyGone                // number of a group that was destroyed ─> nothing: its keys are not all gone
)

// The marks of the ordered map: each kind of keys has one.
const (
	markName = iota
	markGroup
	markOf
	markConsumer
	markPending
	markOwed
)

// big is a stream with parts. Its methods change the value and note nothing.
type big struct {
	v     engine.Parts
	pin   *engine.ValuePin // not nil: the value is read as it was when it was pinned
	more  counted
	spare *spare
}

// counted is what is pending in a group, and for a consumer, beyond what their records say (tally).
type counted struct {
	group, consumer uint32
	inGroup, owed   int
	oldest          int64 // of what was delivered, relative to the base, or undelivered
}

// spare is scratch memory.
type spare struct {
	payload []byte
	record  []byte // a small stream that is being changed
	delta   []byte
	pending shape.Finger // of what is delivered
	owed    shape.Finger
	block   [maxPart]byte
	small   [maxPart]byte // the block of a small stream that is being changed
}

// maxPart is more bytes than a block's cell has.
const maxPart = 4608

var spares = sync.Pool{New: func() any { return new(spare) }}

// maxSpare is how many bytes of a buffer are kept for the next command.
const maxSpare = 64 << 10

func giveSpare(w *spare) {
	for _, b := range [3]*[]byte{&w.payload, &w.record, &w.delta} {
		if *b = (*b)[:0]; cap(*b) > maxSpare {
			*b = nil
		}
	}
	w.pending, w.owed = shape.Finger{}, shape.Finger{}
	spares.Put(w)
}

func (b *big) own() []byte {
	if b.pin != nil {
		return b.pin.Own()
	}
	return b.v.Own()
}

func (b *big) part(plane, number int) []byte {
	if b.pin != nil {
		return b.pin.Part(plane, number)
	}
	return b.v.Part(plane, number)
}

func (b *big) keys() shape.Ordered {
	return shape.Ordered{V: b.v, Pin: b.pin, Leaves: planeLeaves, Nodes: planeNodes, Own: ownMap}
}

func (b *big) len() int { return int(binary.LittleEndian.Uint64(b.own())) }

func (b *big) addLen(n int) { binary.LittleEndian.PutUint64(b.v.Own(), uint64(b.len()+n)) }

func (b *big) groups() int { return int(binary.LittleEndian.Uint32(b.own()[ownGroups:])) }

func (b *big) addGroups(n int) {
	binary.LittleEndian.PutUint32(b.v.Own()[ownGroups:], uint32(b.groups()+n))
}

// meta is what a stream knows besides its entries and groups.
type meta struct {
	last, maxDeleted ID
	added            uint64
	nextGroup        uint32
}

func (b *big) meta() meta {
	own := b.own()
	return meta{
		rawID(own[ownLast:]), rawID(own[ownMaxDeleted:]),
		binary.LittleEndian.Uint64(own[ownAdded:]), binary.LittleEndian.Uint32(own[ownNextGroup:]),
	}
}

func (b *big) setMeta(m meta) {
	own := b.v.Own()
	putRawID(own[ownLast:], m.last)
	putRawID(own[ownMaxDeleted:], m.maxDeleted)
	binary.LittleEndian.PutUint64(own[ownAdded:], m.added)
	binary.LittleEndian.PutUint32(own[ownNextGroup:], m.nextGroup)
}

// tail is the block that gets the next entry, if there is one.
func (b *big) tail() (number int, ok bool) {
	return int(binary.LittleEndian.Uint32(b.own()[ownTail:])), b.len() > 0
}

func (b *big) setTail(number int) {
	binary.LittleEndian.PutUint32(b.v.Own()[ownTail:], uint32(number))
}

// mapKey has room for any key that has no name.
type mapKey [40]byte

func (k *mapKey) block(id ID) []byte { return appendKeyID(append(k[:0], keyBlock), id) }

// groupKeyLen is how many bytes of a key say its kind and group.
const groupKeyLen = 5

func (k *mapKey) of(kind byte, group uint32) []byte {
	return binary.BigEndian.AppendUint32(append(k[:0], kind), group)
}

func (k *mapKey) consumer(group, consumer uint32) []byte {
	return binary.BigEndian.AppendUint32(k.of(keyConsumer, group), consumer)
}

func (k *mapKey) pending(group uint32, id ID) []byte { return appendKeyID(k.of(keyPending, group), id) }

func (k *mapKey) owed(group, consumer uint32, id ID) []byte {
	return appendKeyID(binary.BigEndian.AppendUint32(k.of(keyOwed, group), consumer), id)
}

// nameKey has room for a key with a name.
type nameKey [5 + maxName]byte

func (k *nameKey) group(name []byte) []byte { return append(append(k[:0], keyName), name...) }

func (k *nameKey) consumer(group uint32, name []byte) []byte {
	return append(binary.BigEndian.AppendUint32(append(k[:0], keyOf), group), name...)
}

// In keys an ID takes 8 bytes for the time, and behind that as few as the number needs, in the order of IDs:
//
//	number        bytes
//	up to 240     the number
//	up to 2,032   241 + high byte, low byte    of the number less 241
//	others        247 + how many bytes follow, the number
const (
	twoByteSeq  = 241
	longSeq     = 247
	longSeqFrom = twoByteSeq + (longSeq-twoByteSeq+1)<<8
)

func appendKeyID(dst []byte, id ID) []byte {
	dst = binary.BigEndian.AppendUint64(dst, id.Ms)
	switch n := id.Seq; {
	case n < twoByteSeq:
		return append(dst, byte(n))
	case n < longSeqFrom:
		n -= twoByteSeq
		return append(dst, twoByteSeq+byte(n>>8), byte(n))
	}
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], id.Seq)
	zeros := bits.LeadingZeros64(id.Seq) / 8
	return append(append(dst, byte(longSeq+8-zeros)), raw[zeros:]...)
}

// keyID is the ID that a key ends with.
func keyID(b []byte) (id ID) {
	id.Ms = binary.BigEndian.Uint64(b)
	switch n := uint64(b[8]); {
	case n < twoByteSeq:
		id.Seq = n
	case n <= longSeq:
		id.Seq = twoByteSeq + (n-twoByteSeq)<<8 + uint64(b[9])
	default:
		for _, c := range b[9:] {
			id.Seq = id.Seq<<8 | uint64(c)
		}
	}
	return id
}
