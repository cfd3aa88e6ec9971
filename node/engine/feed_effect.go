package engine

import "encoding/binary"

// An effect says what a key holds after a change, whatever the change was. It is encoded as a word, little-endian, and what
// belongs to it; sizes follow from the word:
//
//	set     header of the record │ expiry, if the header has one │ key │ value
//	delete  word │ key
//	clear   word                     the partition has no keys any more
//	mark    word │ argument
//	large   word │ key               a value that is to be sent apart
//
// The word of all but set is a header of TypeNone, with the kind in place of the value's length. A mark has its kind in place
// of the key's length. So the header's layout is also that of the wire.

// EffectKind is what an effect does.
type EffectKind uint8

// The kinds of effects.
const (
	EffectNone EffectKind = iota
	EffectDelete
	EffectClear
	EffectMark
	EffectLarge
	EffectSet
)

// otherEffect is the word of an effect that sets nothing.
func otherEffect(kind EffectKind, p uint16, keyLen int) header {
	return header(p)<<partitionShift | header(keyLen)<<keyShift | header(kind)<<valueShift
}

func markEffect(p uint16, m Mark) header { return otherEffect(EffectMark, p, int(m.Kind)) }

// effect is what the word of an effect says.
func (h header) effect() EffectKind {
	switch {
	case h.typ() != TypeNone && h.typ() <= TypeZSet:
		return EffectSet
	case h.typ() == TypeNone && h.valueLen() < int(EffectSet) && h&(expiryBit|usesMask) == 0:
		return EffectKind(h.valueLen())
	}
	return EffectNone
}

// effectParts is how long an effect is that begins with the word h: the words, and what is behind them.
func (h header) effectParts() (words, body int) {
	switch h.effect() {
	case EffectSet:
		return h.bodyOffset(), h.bodyLen()
	case EffectDelete, EffectLarge:
		return wordSize, h.keyLen()
	case EffectMark:
		return 2 * wordSize, 0
	}
	return wordSize, 0
}

func (h header) effectLen() int {
	words, body := h.effectParts()
	return words + body
}

// NextEffect is what effects begin with: the kind, the partition, a view of the key, and how long it is. size is 0 if there is no
// whole effect.
func NextEffect(effects []byte) (kind EffectKind, p uint16, key []byte, size int) {
	if len(effects) < wordSize {
		return EffectNone, 0, nil, 0
	}
	h := header(binary.LittleEndian.Uint64(effects))
	words, body := h.effectParts()
	kind = h.effect()
	if kind == EffectNone || words+body > len(effects) {
		return EffectNone, 0, nil, 0
	}
	if body > 0 {
		key = effects[words:][:h.keyLen()]
	}
	return kind, h.partition(), key, words + body
}

// AppendEffect appends what key holds now as an effect: set, delete, or large if the value is.
func (t Txn) AppendEffect(dst, key []byte) []byte {
	sl, _ := t.lookup(key)
	if !sl.found() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(otherEffect(EffectDelete, t.number, len(key))))
		return append(dst, key...)
	}
	item := t.s.item(sl.ref())
	if t.s.isLarge(item.header) {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(otherEffect(EffectLarge, t.number, len(key))))
		return append(dst, key...)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(item.header))
	if item.header.hasExpiry() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(item.expireAt))
	}
	return append(dst, bodyPart(item.body, 0, item.header.bodyLen())...)
}
