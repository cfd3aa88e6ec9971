package engine

import (
	"encoding/binary"
	"fmt"
)

// An effect says what a key holds after a change, whatever the change was; of a value with parts it
// says what changed. It is encoded as a little-endian word and the data that belongs to it; the
// word has the length of the data:
//
//	set     header of the record │ expiry, if the header has one │ key │ value
//	delete  word │ key
//	clear   word                      the partition has no keys any more, in all databases
//	clear   word │ database           one of its sections has none
//	mark    word │ argument
//	large   word │ key                a value that is to be sent apart
//	begin   word │ second │ key │ …   a value with parts, still without any; what it had is void
//	delta   word │ second │ key │ …   a change of a value with parts
//	expire  word │ second │ key │ …   when a value with parts expires
//	rename  word │ second │ key │ …   a value with parts gets another key
//	unit    word │ second │ effects   these go together
//
// The word of a set is the record's header, so the header's layout is also that of the wire. The
// words of all others are
//
//	bits 0-3, 4-5  zero (TypeNone)    bits 34-38  kind
//	bits  6-17     partition          bits 39-62  length of what is behind the key
//	bits 18-33     key length         bit  63     the key's last byte is its database, as in a header
//
// Bit 63 is never set for keys of database 0, so members that do not know it understand all effects
// where no other database is used. A mark has its kind in place of the key's length. All kinds from
// begin on have a second word, so the length of an unknown kind is known. Its meaning is not, and
// it is refused with an UnknownEffect.

// EffectKind is what an effect does.
type EffectKind uint8

// The kinds of effects. EffectSet stands in no word.
const (
	EffectNone EffectKind = iota
	EffectDelete
	EffectClear
	EffectMark
	EffectLarge
	EffectSet
	EffectBegin
	EffectDelta
	EffectExpire
	EffectUnit
	EffectRename

	numEffects
)

// inUnits reports whether effects of the kind can be in a unit.
func (k EffectKind) inUnits() bool { return k != EffectNone && k != EffectUnit && k != EffectMark }

const (
	kindMask    = 1<<5 - 1
	restShift   = valueShift + 5
	maxRest     = 1<<24 - 1
	effectFlags = expiryBit | usesMask // that no effect has yet
)

// UnknownEffect is the error for an effect of a kind, or a type of value, that this engine does not
// know: its sender is newer. The sender may send it again when both have one level.
type UnknownEffect struct {
	Kind EffectKind // EffectSet if it is the type, or a flag, that is not known
	Type Type
}

func (u UnknownEffect) Error() string {
	if u.Kind == EffectSet {
		return fmt.Sprintf("unknown effect: a value of type %d, the highest known is %d", u.Type, lastType)
	}
	return fmt.Sprintf("unknown effect: kind %d, the highest known is %d", u.Kind, numEffects-1)
}

// otherEffect is the word of an effect that sets nothing. Outside database 0, keyLen counts the database.
func otherEffect(kind EffectKind, section uint16, keyLen int) header {
	h := header(PartitionOf(section))<<partitionShift | header(keyLen)<<keyShift | header(kind)<<valueShift
	if section >= Partitions {
		h |= databaseBit
	}
	return h
}

func markEffect(p uint16, m Mark) header { return otherEffect(EffectMark, p, int(m.Kind)) }

// withRest is the word of an effect with n bytes behind the key, up to maxRest.
func (h header) withRest(n int) header { return h | header(n)<<restShift }

func (h header) rest() int { return int(h>>restShift) & maxRest }

// effect is what the word of an effect says; it may be a kind that is not known. EffectNone: it is
// no effect.
func (h header) effect() EffectKind {
	if h&typeMask != 0 {
		return EffectSet
	}
	kind := EffectKind(h>>valueShift) & kindMask
	if kind == EffectSet || kind < EffectSet && h.rest() != 0 {
		return EffectNone
	}
	return kind
}

// unknown reports whether the word of an effect says what is not known here.
func (h header) unknown() bool {
	switch kind := h.effect(); kind {
	case EffectNone:
		return false
	case EffectSet:
		return h.typ() > lastType
	case EffectMark, EffectUnit:
		return h&(effectFlags|databaseBit) != 0
	default:
		return kind >= numEffects || h&effectFlags != 0
	}
}

// effectParts is how long an effect is that begins with the word h: the words, and what is behind
// them.
func (h header) effectParts() (words, body int) {
	switch h.effect() {
	case EffectNone:
		return wordSize, 0
	case EffectSet:
		return h.bodyOffset(), h.bodyLen()
	case EffectDelete, EffectClear, EffectLarge:
		return wordSize, h.keyLen()
	case EffectMark:
		return 2 * wordSize, 0
	}
	return 2 * wordSize, h.keyLen() + h.rest()
}

func (h header) effectLen() int {
	words, body := h.effectParts()
	return words + body
}

// NextEffect returns the kind, the section, a view of the key, and the length of the first effect.
// The section is the partition for a mark, a unit, and a clear of all databases. size is 0 if there is
// no whole effect, or none that is known here; CheckEffects says which.
func NextEffect(effects []byte) (kind EffectKind, section uint16, key []byte, size int) {
	if len(effects) < wordSize {
		return EffectNone, 0, nil, 0
	}
	h := header(binary.LittleEndian.Uint64(effects))
	words, body := h.effectParts()
	kind = h.effect()
	if kind == EffectNone || h.unknown() || words+body > len(effects) {
		return EffectNone, 0, nil, 0
	}
	if body > 0 {
		key = effects[words:][:h.keyLen()]
	}
	section = h.partition()
	if h&databaseBit != 0 {
		if len(key) == 0 || !isDatabase(kind, key[len(key)-1]) {
			return EffectNone, 0, nil, 0
		}
		section = Section(section, key[len(key)-1])
		key = key[:len(key)-1]
	}
	if kind == EffectClear && len(key) > 0 {
		return EffectNone, 0, nil, 0
	}
	return kind, section, key, words + body
}

// isDatabase reports whether an effect of a kind can name the database: 0 is named by a clear only.
func isDatabase(kind EffectKind, database byte) bool {
	return database < Databases && (database > 0 || kind == EffectClear)
}

// clears is what a clear effect clears.
func clears(effect []byte) sections {
	_, section, _, _ := NextEffect(effect)
	if header(binary.LittleEndian.Uint64(effect))&databaseBit == 0 {
		return allOf(section)
	}
	return onlyOf(section)
}

// partRest is what is behind the key in an effect on a value with parts.
func partRest(effect []byte) []byte {
	return effect[2*wordSize+header(binary.LittleEndian.Uint64(effect)).keyLen():]
}

// CheckEffects reports whether these are whole effects that Apply knows: nil, an UnknownEffect, or
// ErrEffects. admits returns an error if the receiver does not know the type of a value, or if the
// bytes of a record's value are none; of a value with parts it gets nil.
func CheckEffects(effects []byte, admits func(typ Type, value []byte) error) error {
	return checkEffects(effects, admits, false)
}

// checkEffects is CheckEffects; admits may be nil: then all types are admitted.
func checkEffects(effects []byte, admits func(typ Type, value []byte) error, inUnit bool) error {
	for len(effects) > 0 {
		kind, _, _, size := NextEffect(effects)
		if kind == EffectNone || kind == EffectLarge || inUnit && !kind.inUnits() {
			return effectError(effects)
		}
		var err error
		switch kind {
		case EffectUnit:
			err = checkEffects(effects[2*wordSize:size], admits, true)
		case EffectSet:
			if h := header(binary.LittleEndian.Uint64(effects)); admits != nil {
				err = admits(h.typ(), effects[size-h.valueLen():size])
			}
		case EffectBegin, EffectDelta, EffectExpire, EffectRename:
			err = checkParts(kind, effects[:size], admits)
		}
		if err != nil {
			return err
		}
		effects = effects[size:]
	}
	return nil
}

// longDelta is the length from which on a delta may have hundreds of elements.
const longDelta = 512

// LongDeltas returns how many bytes of effects are long deltas: parts of a snapshot, or what a
// command has done to many elements. Each element takes a microsecond to apply.
func LongDeltas(effects []byte) (bytes int) {
	for len(effects) > 0 {
		kind, _, _, size := NextEffect(effects)
		switch {
		case kind == EffectNone:
			return bytes // CheckEffects says why
		case kind == EffectUnit:
			bytes += LongDeltas(effects[2*wordSize : size])
		case kind == EffectDelta && size > longDelta:
			bytes += size
		}
		effects = effects[size:]
	}
	return bytes
}

// effectError is what is wrong with the first of the effects.
func effectError(effects []byte) error {
	if len(effects) >= wordSize {
		if h := header(binary.LittleEndian.Uint64(effects)); h.unknown() {
			return UnknownEffect{Kind: h.effect(), Type: h.typ()}
		}
	}
	return ErrEffects
}

// AppendEffect appends the content of key as an effect: set, delete, or large if the value is; for
// a value with parts, begin and deltas.
func (t Txn) AppendEffect(dst, key []byte) []byte {
	en, _ := t.lookup(key)
	if !t.isThere(en) {
		return t.appendKeyEffect(dst, EffectDelete, key)
	}
	item := t.s.cells.item(en.ref())
	if v, ok := t.Parts(item); ok {
		return t.appendParts(dst, v)
	}
	if t.s.cells.isLarge(item.header) {
		return t.appendKeyEffect(dst, EffectLarge, key)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(item.header))
	if item.header.hasExpiry() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(item.expireAt))
	}
	return append(dst, bodyPart(item.body, 0, item.header.bodyLen())...)
}

// appendKeyEffect appends an effect that has a key and nothing else.
func (t Txn) appendKeyEffect(dst []byte, kind EffectKind, key []byte) []byte {
	if t.section < Partitions {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(otherEffect(kind, t.section, len(key))))
		return append(dst, key...)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(otherEffect(kind, t.section, len(key)+1)))
	return append(append(dst, key...), DatabaseOf(t.section))
}
