package shape

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Limits of a packed value. A type changes to its other form before a value would exceed them, and
// back when the value is within half of them (Small).
const (
	MaxPacked     = 1024 // bytes of the record's value
	MaxPackedList = 4080 // of a list that comes from elsewhere: one block of a tree
	MaxEntries    = 128
)

// ErrMalformed is the error for bytes that are no packed value.
var ErrMalformed = errors.New("malformed packed value")

// A packed value is a byte of flags, the base of its times if it has any, and a block:
//
//	flags │ base │ block
//	  1     0, 8
const (
	timedFlag  = 1
	packedBase = 8
)

// Kind is what the entries of a packed value are.
type Kind struct {
	Items    int  // strings of an entry: a member, a field and its value
	Ranked   bool // entries have a rank, and are in the order of rank and first string
	Keyed    bool // no two entries have the same first string
	Timed    bool // entries may have a time when they expire
	MaxBytes int  // of the block
	UpTo     int  // bytes that a change leaves at most
	Most     int  // entries
}

// The kinds of packed values.
var (
	PackedHash = Kind{Items: 2, Keyed: true, Timed: true, MaxBytes: MaxPacked, UpTo: MaxPacked, Most: MaxEntries}
	PackedSet  = Kind{Items: 1, Keyed: true, MaxBytes: MaxPacked, UpTo: MaxPacked, Most: MaxEntries}
	PackedZSet = Kind{Items: 1, Ranked: true, Keyed: true, MaxBytes: MaxPacked, UpTo: MaxPacked, Most: MaxEntries}
	PackedList = Kind{Items: 1, MaxBytes: MaxPackedList, UpTo: MaxPacked, Most: maxEntries}
)

const rankFront = 8

func (k *Kind) front() int {
	if k.Ranked {
		return rankFront
	}
	return 0
}

// Packed is a view of a packed value, which was checked when it came into this process.
type Packed struct {
	Kind *Kind
	b    block
	base int64
}

// ReadPacked is a view of a record's value, valid as long as that.
func ReadPacked(kind *Kind, value []byte) Packed {
	p := Packed{Kind: kind}
	if value[0]&timedFlag != 0 {
		p.base = int64(binary.LittleEndian.Uint64(value[1:]))
		value = value[packedBase:]
	}
	p.b = value[1:]
	return p
}

// Len is how many entries the value has.
func (p *Packed) Len() int { return p.b.count() }

// Timed reports whether entries may have times.
func (p Packed) Timed() bool { return p.b.items() > p.Kind.Items }

// Small reports whether the value is within half of the limits.
func (p *Packed) Small() bool {
	return p.Len() <= p.Kind.Most/2 && p.b.need() <= p.Kind.UpTo/2
}

// Find passes over the value once and sets at[i] to the number of the entry whose first string is
// keys[i], -1 if there is none.
func (p *Packed) Find(keys [][]byte, at []int) {
	var few [16]probe
	for len(keys) > len(few) {
		p.find(keys[:len(few)], at, &few)
		keys, at = keys[len(few):], at[len(few):]
	}
	p.find(keys, at, &few)
}

func (p *Packed) find(keys [][]byte, at []int, probes *[16]probe) {
	for i, key := range keys {
		probes[i], at[i] = probeOf(key), -1
	}
	b, left := p.b, len(keys)
	w, front, n := b.slotLen(), b.front(), b.count()
	off := blockHead
	for e, slot := 0, len(b)-w; e < n && left > 0; e, slot = e+1, slot-w {
		code := b[slot+front]
		for i := range keys {
			if x := &probes[i]; x.code == code && x.is(code, b[off:off+int(stored[code])]) && at[i] < 0 {
				at[i] = e
				left--
			}
		}
		for _, code := range b[slot+front : slot+w] {
			off += int(stored[code])
		}
	}
}

// Item is a string of an entry. An entry with a number that Len does not reach has none.
func (p *Packed) Item(entry, i int) Item {
	code, bytes := p.b.item(entry, p.b.offset(entry), i)
	return Item{code, bytes}
}

// Each calls f for the entries from one on, until it returns false.
func (p *Packed) Each(from int, f func(entry int, first, second Item, expireAt int64) bool) {
	off := p.b.offset(from)
	for e := from; e < p.b.count(); e++ {
		var items [maxItems]Item
		at := off
		for i, code := range p.b.slot(e)[p.b.front():] {
			n := int(stored[code])
			items[i] = Item{code, p.b[off : off+n : off+n]}
			off += n
		}
		if !f(e, items[0], items[1], p.expireAt(e, at)) {
			return
		}
	}
}

// EachBack calls f for the first strings of the entries in front of one, the nearest first, until
// it returns false.
func (p *Packed) EachBack(before int, f func(entry int, first Item) bool) {
	off := p.b.offset(before)
	for e := before - 1; e >= 0; e-- {
		off -= p.b.size(e)
		code, bytes := p.b.item(e, off, 0)
		if !f(e, Item{code, bytes}) {
			return
		}
	}
}

// Rank is the rank of an entry of a ranked value.
func (p *Packed) Rank(entry int) uint64 { return binary.LittleEndian.Uint64(p.b.slot(entry)) }

// ExpireAt is when an entry expires, in unix milliseconds; 0: never.
func (p *Packed) ExpireAt(entry int) int64 { return p.expireAt(entry, p.b.offset(entry)) }

func (p *Packed) expireAt(entry, off int) int64 {
	if p.b.items() == p.Kind.Items {
		return 0
	}
	if code, bytes := p.b.item(entry, off, p.Kind.Items); code != codeNone {
		return p.base + decodeInt(bytes)
	}
	return 0
}

// CheckPacked reports whether bytes from elsewhere, of any content, are a packed value of the kind.
// All other functions rely on it.
func CheckPacked(kind *Kind, value []byte) error {
	malformed := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	head := 1
	if len(value) > 0 && value[0]&timedFlag != 0 {
		head += packedBase
	}
	if len(value) < head+blockHead || len(value) > kind.MaxBytes+head || value[0]&^timedFlag != 0 {
		return malformed("%d bytes", len(value))
	}
	b := block(value[head:])
	items := kind.Items
	if value[0]&timedFlag != 0 {
		items++
	}
	if b.front() != kind.front() || int(b[itemsOf]) != items || items > kind.Items && !kind.Timed {
		return malformed("%d items and %d bytes in front", b.items(), b.front())
	}
	if b.count() == 0 || b.count() > kind.Most || b.need() != len(b) || b.used() < blockHead {
		return malformed("%d entries, %d bytes of %d", b.count(), b.need(), len(b))
	}
	if err := b.check(); err != nil {
		return malformed("%w", err)
	}
	p := ReadPacked(kind, value)
	return p.checkEntries(malformed)
}

// checkEntries is CheckPacked of what the form of the block does not say.
func (p *Packed) checkEntries(malformed func(format string, args ...any) error) (err error) {
	last, lastRank := []byte(nil), uint64(0)
	off := blockHead
	for e := range p.b.count() {
		at := off
		for i, code := range p.b.slot(e)[p.b.front():] {
			isTime := i == p.Kind.Items && (code == codeNone || code == codeInt+expirySize)
			if i == p.Kind.Items != isTime || code == codeAway || code == codeNone && !isTime {
				return malformed("item %d of entry %d has code %d", i, e, code)
			}
			if i < p.Kind.Items && code >= codeInt && intBytes(decodeInt(p.b[off:off+int(stored[code])])) != int(stored[code]) {
				return malformed("item %d of entry %d is an integer of too many bytes", i, e)
			}
			off += int(stored[code])
		}
		if p.Kind.Ranked {
			var buf Decimal
			code, raw := p.b.item(e, at, 0)
			s := Item{code, raw}.Text(&buf)
			rank := p.Rank(e)
			if e > 0 && (rank < lastRank || rank == lastRank && bytes.Compare(s, last) <= 0) {
				return malformed("entry %d is out of order", e)
			}
			last, lastRank = append(last[:0], s...), rank
		}
	}
	if p.Kind.Keyed {
		return p.checkKeys(malformed)
	}
	return nil
}

// checkKeys finds two entries with the same first string.
func (p *Packed) checkKeys(malformed func(format string, args ...any) error) error {
	var seen [16]uint64 // a bit for each hash
	for e, off := 0, blockHead; e < p.b.count(); e++ {
		code, raw := p.b.item(e, off, 0)
		h := xxhash.Sum64(raw) + uint64(code)
		word, bit := &seen[h>>6%16], uint64(1)<<(h%64)
		if *word&bit != 0 && p.hasBefore(e, code, raw) {
			return malformed("entry %d has the key of another one", e)
		}
		*word |= bit
		off += p.b.size(e)
	}
	return nil
}

// hasBefore reports whether an entry in front of one has this first item.
func (p *Packed) hasBefore(entry int, code byte, raw []byte) bool {
	for e, off := 0, blockHead; e < entry; e++ {
		if c, b := p.b.item(e, off, 0); c == code && string(b) == string(raw) {
			return true
		}
		off += p.b.size(e)
	}
	return false
}
