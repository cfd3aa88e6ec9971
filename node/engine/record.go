package engine

// A record is one cell: the header word, the expiry word if the header says so, and then the body,
// which is the key directly followed by the value. A body above cells.maxInline lies in the space
// of large bodies, and the cell's third word is its offset there. Which of the two is a function of
// the lengths alone, so no bit is spent on it.

// Type says what a record's value is. TypeNone never is stored: a cell with it is free.
type Type uint8

// The types of values. Only strings exist so far; the numbers of the others are reserved.
const (
	TypeNone Type = iota
	TypeString
	TypeHash
	TypeList
	TypeSet
	TypeZSet
	TypeStream

	// typeElsewhere, in a header only, says that the value tells its type: it has parts (parts.go).
	// So there is room for types beyond these. With the longest length it is a string of
	// MaxValueLen bytes.
	typeElsewhere
	// lastType is the highest number that a header has for a type of its own.
	lastType = TypeStream
	// lastForm is the highest number of a type whose values may have parts.
	lastForm = 31
)

// Limits of one record.
const (
	MaxKeyLen   = 1<<16 - 1 // in database 0; a byte less in the others
	MaxValueLen = 512 << 20 // of a string; other types have a byte less
)

const wordSize = 8

// header packs everything about a record but its expiry:
//
//	bits  0-2   type          bits  4-5   uses since eviction last looked, 3 being three or more
//	bit   3     has expiry    bits  6-17  partition
//	bits 18-33  key length    bits 34-62  value length
//	bit  63     there is one more byte behind the key, its database, which the key length counts
//
// A key of database 0 has no such byte: its name is all of it.
//
// A free cell's word has its lower half zero (the type is TypeNone) and the next free cell in the
// upper. In the small queue, whose cells are as long as their records, a dead record keeps its
// lengths and only loses its type.
type header uint64

const (
	typeMask       = 7
	expiryBit      = 1 << 3
	oneUse         = 1 << 4
	maxUses        = 3
	usesMask       = maxUses * oneUse
	partitionShift = 6
	keyShift       = 18
	valueShift     = 34
	valueMask      = MaxValueLen - 1 // of 29 bits
	databaseBit    = 1 << databaseBitShift

	databaseBitShift = 63

	// fullString is what type and length are of a string of MaxValueLen bytes: its length has a bit
	// too many.
	fullString = header(typeElsewhere) | valueMask<<valueShift
	fullMask   = typeMask | valueMask<<valueShift
)

// makeHeader packs a header for a key with a name of nameLen bytes. A large record always has an expiry
// word, 0 for never, so that its cell has one layout.
func (e *Engine) makeHeader(typ Type, section uint16, nameLen, valueLen int, hasExpiry bool) header {
	h := header(typ) | header(PartitionOf(section))<<partitionShift | header(nameLen)<<keyShift | header(valueLen)<<valueShift
	if valueLen == MaxValueLen {
		h = h&^(fullMask|databaseBit) | fullString
	}
	if section >= Partitions {
		h += databaseBit | 1<<keyShift
	}
	if hasExpiry || h.cellBody() > e.cells.maxInline {
		h |= expiryBit
	}
	return h
}

// withValueLen is h for a value of n bytes: up to MaxValueLen for a string, less for other types.
func (e *Engine) withValueLen(h header, n int) header {
	if n == MaxValueLen {
		h = h&^fullMask | fullString
	} else {
		h = h&^fullMask | header(h.typ()) | header(n)<<valueShift
	}
	if h.bodyLen() > e.cells.maxInline {
		h |= expiryBit
	}
	return h
}

func (h header) live() bool        { return h&typeMask != 0 }
func (h header) hasExpiry() bool   { return h&expiryBit != 0 }
func (h header) hasDatabase() bool { return h&databaseBit != 0 }
func (h header) uses() int         { return int(h&usesMask) / oneUse }
func (h header) partition() uint16 { return uint16(h>>partitionShift) & (Partitions - 1) }
func (h header) keyLen() int       { return int(h>>keyShift) & MaxKeyLen }
func (h header) nameLen() int      { return h.keyLen() - int(h>>databaseBitShift) }
func (h header) bodyLen() int      { return h.keyLen() + h.valueLen() }

// typ is the type as far as the header tells.
func (h header) typ() Type {
	if h&fullMask == fullString {
		return TypeString
	}
	return Type(h & typeMask)
}

// isRoot reports whether the value has parts.
func (h header) isRoot() bool {
	return h&typeMask == header(typeElsewhere) && h&fullMask != fullString
}

func (h header) valueLen() int {
	if h&fullMask == fullString {
		return MaxValueLen
	}
	return int(h>>valueShift) & valueMask
}

// cellBody is bodyLen of a record that is not large; of a large one it is long enough to tell.
func (h header) cellBody() int { return h.keyLen() + int(h>>valueShift)&valueMask }

// bodyOffset is where the body, or the offset of a large one, begins in the cell.
func (h header) bodyOffset() int {
	if h.hasExpiry() {
		return 2 * wordSize
	}
	return wordSize
}

// Item is a view of one stored record. It is valid until the next call on the Txn that may change
// or remove something, or Unlock; in a walk, during the call. It is handed round by value: with a
// slice in it, it would not fit the compiler's notion of what can stay in registers (four words),
// and a GET took a fifth longer (BenchmarkOnData).
type Item struct {
	header   header
	expireAt int64
	body     *byte // the first byte; the header has the lengths
}

// Type is the type of the value.
func (i Item) Type() Type {
	if t := Type(i.header & typeMask); t != typeElsewhere {
		return t
	}
	return i.typeElsewhere()
}

func (i Item) typeElsewhere() Type {
	if i.header.isRoot() {
		return Type(i.Value()[rootType])
	}
	return TypeString
}

// HasParts reports whether the value has parts, see Txn.Parts.
func (i Item) HasParts() bool { return i.header.isRoot() }

// Own is what Parts.Own is, of a value with parts.
func (i Item) Own() []byte { return i.Value()[rootSize:] }

// Key is a view outside the Go heap, not to be changed, valid as long as the Item.
func (i Item) Key() []byte { return bodyPart(i.body, 0, i.header.nameLen()) }

// Value is a view outside the Go heap, not to be changed, valid as long as the Item.
func (i Item) Value() []byte { return bodyPart(i.body, i.header.keyLen(), i.header.valueLen()) }

// ExpireAt is when the item expires in unix milliseconds, 0 if never.
func (i Item) ExpireAt() int64 { return i.expireAt }

// Uses is how often the item was found since eviction has last looked at it, 3 being three times or
// more.
func (i Item) Uses() int { return i.header.uses() }

func expired(expireAt, now int64) bool { return expireAt != 0 && expireAt <= now }

// header reads the header of the record in cell ref.
func (c *cells) header(ref handle) header { return header(*c.word(ref)) }

func (c *cells) setHeader(ref handle, h header) { *c.word(ref) = uint64(h) }

// expireAt is the record's expiry; 0 if it has none.
func (c *cells) expireAt(ref handle, h header) int64 {
	if !h.hasExpiry() {
		return 0
	}
	return int64(*c.second(ref))
}

// setExpireAt sets the expiry of the record, whose header is h; 0 if h has no word for one.
func (c *cells) setExpireAt(ref handle, h header, at int64) {
	if h.hasExpiry() {
		*c.second(ref) = uint64(at)
		c.expiresAt(ref, at)
	}
}

// isLarge reports whether the body lies in the space of large bodies.
func (c *cells) isLarge(h header) bool { return h.cellBody() > c.maxInline }

// cellLen is how many bytes of its cell a record with header h takes.
func (e *Engine) cellLen(h header) int {
	if h.cellBody() > e.cells.maxInline {
		return 3 * wordSize
	}
	return h.bodyOffset() + h.cellBody()
}

// body is the key and value of the record, wherever they lie. Of a root the value is what parts.go
// says.
func (c *cells) body(ref handle, h header) []byte {
	if c.isLarge(h) {
		return c.e.large.bytes(*c.third(ref), h.bodyLen())
	}
	return c.view(ref, h.bodyOffset(), h.cellBody())
}

func (c *cells) key(ref handle) []byte {
	h := c.header(ref)
	return c.body(ref, h)[:h.nameLen()]
}

// fullKey is the key with its database, if that is behind it.
func (c *cells) fullKey(ref handle) []byte {
	h := c.header(ref)
	return c.body(ref, h)[:h.keyLen()]
}

// keyIs reports whether a record, of the right section, is that of the key.
func (c *cells) keyIs(ref handle, key []byte) bool {
	h := c.header(ref)
	return h.nameLen() == len(key) && string(c.body(ref, h)[:len(key)]) == string(key)
}

func (c *cells) item(ref handle) Item {
	h := c.header(ref)
	return Item{header: h, expireAt: c.expireAt(ref, h), body: firstOf(c.body(ref, h))}
}

// touch notes a use for eviction. A record in frequent use is not written to.
func (c *cells) touch(ref handle) {
	if h := c.header(ref); h.uses() < maxUses {
		c.setHeader(ref, h+oneUse)
	}
}

// halfUsed is h with half the uses.
func (h header) halfUsed() header { return h&^usesMask | h>>1&oneUse }

// usedLike is h with the uses of old. An overwrite is no use: the keys that are written most are
// not those that are read most.
func (h header) usedLike(old header) header { return h&^usesMask | old&usesMask }

// recordLen is how long a record is, wherever its parts lie: to a byte, if it has MaxValueLen.
func (h header) recordLen() int64 { return int64(h.bodyOffset() + h.cellBody()) }

// account adds the record to the shard's sums (sign 1) or takes it out (-1).
func (s *shard) account(h header, expireAt int64, sign int64) {
	s.records += sign
	s.sums.Recorded++
	s.sums.Values += sign * h.recordLen()
	if expireAt != 0 {
		s.sums.Volatile += sign
	}
}
