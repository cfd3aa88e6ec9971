package shape

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// An item is a string as a block stores it: a code, which stands in the entry's slot, and as many
// bytes as the code says.
//
//	  0-191   as many bytes
//	192-239   208, 224 ... 960 bytes; the last one says how many of them are padding, itself included
//	240-248   an integer of 0 to 8 bytes; its string is the decimal
//	    249   the number of a part, which has the string
//	    250   nothing: the entry has no such item
//
// A string that is the decimal of an int64, as strconv writes it, is always stored as an integer.
// So two items that are not parts are equal if their codes and bytes are.
const (
	codePadded = 192
	codeInt    = 240
	codeAway   = 249
	codeNone   = 250

	padStep    = 16
	firstPad   = 208 // bytes of codePadded
	maxInline  = firstPad + (codeInt-codePadded-1)*padStep - 1
	awayNumber = 4  // bytes of a part's number
	maxDecimal = 20 // bytes of the longest decimal
)

// stored is how many bytes an item has, by its code.
var stored = func() (n [256]uint16) {
	for code := range n {
		switch {
		case code < codePadded:
			n[code] = uint16(code)
		case code < codeInt:
			n[code] = uint16(firstPad + (code-codePadded)*padStep)
		case code < codeAway:
			n[code] = uint16(code - codeInt)
		case code == codeAway:
			n[code] = awayNumber
		}
	}
	return n
}()

// Item is one string of a value. Its bytes are a view into the value, valid until the next call that
// may change the value.
type Item struct {
	code  byte
	bytes []byte
}

// Int returns the integer whose decimal the item is.
func (i Item) Int() (n int64, ok bool) {
	if i.code < codeInt || i.code >= codeAway {
		return 0, false
	}
	return decodeInt(i.bytes), true
}

// Len is how many bytes the string has.
func (i Item) Len() int {
	if n, ok := i.Int(); ok {
		var buf [maxDecimal]byte
		return len(strconv.AppendInt(buf[:0], n, 10))
	}
	return len(i.raw())
}

// Size is at least how many bytes the string has, found out without looking at the string.
func (i Item) Size() int {
	if i.code >= codeInt && i.code < codeAway {
		return maxDecimal
	}
	return len(i.bytes)
}

// stored is how many bytes the item takes.
func (i Item) stored() int {
	if i.code == codeAway {
		return awayNumber + awaySize(len(i.bytes))
	}
	return len(i.bytes)
}

// Append appends the string to dst.
func (i Item) Append(dst []byte) []byte {
	if n, ok := i.Int(); ok {
		return strconv.AppendInt(dst, n, 10)
	}
	return append(dst, i.raw()...)
}

// Decimal has room for the decimal of an integer.
type Decimal [maxDecimal]byte

// Text is the string: a view, or written to buf.
func (i Item) Text(buf *Decimal) []byte {
	if n, ok := i.Int(); ok {
		return strconv.AppendInt(buf[:0], n, 10)
	}
	return i.raw()
}

// Long is a view of a string that is longer than any integer's decimal.
func (i Item) Long() []byte { return i.raw() }

// raw is the string of an item that is not an integer. An item in a part has been resolved, so its
// bytes are the string.
func (i Item) raw() []byte {
	if i.code >= codePadded && i.code < codeInt {
		return i.bytes[:len(i.bytes)-int(i.bytes[len(i.bytes)-1])]
	}
	return i.bytes
}

// probe is a string that is looked for or stored: what its item would be.
type probe struct {
	code byte // codeAway if the string is too long for a block
	s    []byte
	n    uint64 // of an integer
	long int    // bytes of a string that is not there yet, see List.fill
	hash uint32 // of a key
}

func probeOf(s []byte) probe {
	if n, ok := parseInt(s); ok {
		return probe{code: byte(codeInt + intBytes(n)), s: s, n: uint64(n)}
	}
	switch {
	case len(s) < codePadded:
		return probe{code: byte(len(s)), s: s}
	case len(s) <= maxInline:
		return probe{code: byte(codePadded + (len(s)+padStep-firstPad)/padStep), s: s}
	}
	return probe{code: codeAway, s: s}
}

// length is how many bytes a string has that is not an integer.
func (p *probe) length() int { return max(len(p.s), p.long) }

// size is how many bytes the item has in its block.
func (p *probe) size() int { return int(stored[p.code]) }

// put writes the item's bytes, which are as many as its code says. Not for a part's number.
func (p *probe) put(dst []byte) {
	switch {
	case p.code < codePadded:
		copy(dst, p.s)
	case p.code < codeInt:
		clear(dst[copy(dst, p.s):])
		dst[len(dst)-1] = byte(len(dst) - len(p.s))
	case p.code < codeAway:
		putInt(dst, p.n)
	}
}

// is reports whether an item, which is not a part, is this string.
func (p *probe) is(code byte, b []byte) bool {
	if code != p.code {
		return false
	}
	switch {
	case code < codePadded:
		return string(b) == string(p.s)
	case code < codeInt:
		return int(b[len(b)-1]) == len(b)-len(p.s) && string(b[:len(p.s)]) == string(p.s)
	}
	return uint64(decodeInt(b)) == p.n
}

// parseInt returns the integer whose decimal s is.
func parseInt(s []byte) (n int64, ok bool) {
	digits := s
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > maxDecimal-1 || digits[0] == '0' && len(s) > 1 {
		return 0, false
	}
	u := uint64(0)
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		u = u*10 + uint64(c) // of 19 digits, which fit
	}
	switch {
	case negative && u <= 1<<63:
		return -int64(u), true
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}

// intBytes is how many bytes an integer takes, 0 to 8.
func intBytes(n int64) int {
	if n == 0 {
		return 0
	}
	return (bits.Len64(uint64(n^n>>63)) + 8) / 8
}

func putInt(dst []byte, n uint64) {
	for i := range dst {
		dst[i] = byte(n >> (8 * i))
	}
}

func decodeInt(b []byte) int64 {
	if len(b) == 8 {
		return int64(binary.LittleEndian.Uint64(b))
	}
	n := uint64(0)
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(n<<shift) >> shift
}
