package bitstring

import (
	"encoding/binary"
	"math/bits"
)

// Bits are numbered as in Redis: bit 0 is the highest of byte 0.

// Count returns how many bits of b are set. It reads four words at a time: BenchmarkBits shows what
// that saves.
func Count(b []byte) (n int) {
	for ; len(b) >= 32; b = b[32:] {
		w := b[:32]
		n += bits.OnesCount64(binary.NativeEndian.Uint64(w)) +
			bits.OnesCount64(binary.NativeEndian.Uint64(w[8:])) +
			bits.OnesCount64(binary.NativeEndian.Uint64(w[16:])) +
			bits.OnesCount64(binary.NativeEndian.Uint64(w[24:]))
	}
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(binary.NativeEndian.Uint64(b))
	}
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}

// CountIn returns how many of the bits [from, to) of b are set. The range must be within b.
func CountIn(b []byte, from, to int64) int {
	if from >= to {
		return 0
	}
	first, last := from/8, (to-1)/8
	before := b[first] & ^(0xFF >> (from % 8)) // bits of the first byte that precede the range
	behind := b[last] & (0x7F >> ((to - 1) % 8))
	return Count(b[first:last+1]) - bits.OnesCount8(before) - bits.OnesCount8(behind)
}

// Find returns the position of the first bit in [from, to) of b that is set or, if set is false,
// clear; -1 if there is none. The range must be within b.
func Find(b []byte, set bool, from, to int64) int64 {
	flip := uint64(0) // turns the bit that is looked for into a one
	if !set {
		flip = ^flip
	}
	at := from
	if at%8 != 0 && at < to {
		if x := (b[at/8] ^ byte(flip)) & (0xFF >> (at % 8)); x != 0 {
			return within(at&^7+int64(bits.LeadingZeros8(x)), to)
		}
		at = at&^7 + 8
	}
	for ; at+256 <= to; at += 256 { // four words at a time, while they have no such bit
		w := b[at/8:][:32]
		if (binary.NativeEndian.Uint64(w)^flip)|(binary.NativeEndian.Uint64(w[8:])^flip)|
			(binary.NativeEndian.Uint64(w[16:])^flip)|(binary.NativeEndian.Uint64(w[24:])^flip) != 0 {
			break
		}
	}
	for ; at+64 <= to; at += 64 {
		if x := binary.BigEndian.Uint64(b[at/8:]) ^ flip; x != 0 {
			return at + int64(bits.LeadingZeros64(x))
		}
	}
	for ; at < to; at += 8 {
		if x := b[at/8] ^ byte(flip); x != 0 {
			return within(at+int64(bits.LeadingZeros8(x)), to)
		}
	}
	return -1
}

// within returns a position that was found, or -1 if it lies behind the end of the range.
func within(at, to int64) int64 {
	if at < to {
		return at
	}
	return -1
}

// Field returns the unsigned integer of width bits, 1 to 64, that begins at bit at of b. Bits
// behind the end of b are 0.
func Field(b []byte, at uint64, width uint) uint64 {
	var padded [9]byte
	nine := padded[:]
	if first := at / 8; first+9 <= uint64(len(b)) {
		nine = b[first : first+9]
	} else if first < uint64(len(b)) {
		copy(nine, b[first:])
	}
	skip := at % 8
	return (binary.BigEndian.Uint64(nine)<<skip | uint64(nine[8])>>(8-skip)) >> (64 - width)
}

// SetField writes the low width bits of v at bit at of b. All of the field must be within b.
func SetField(b []byte, at uint64, width uint, v uint64) {
	for end := at + uint64(width); width > 0; {
		last := (end - 1) / 8
		behind := uint(7 - (end-1)%8) // bits of that byte behind the field
		n := min(width, 8-behind)
		mask := byte(0xFF>>(8-n)) << behind
		b[last] = b[last]&^mask | byte(v<<behind)&mask
		v >>= n
		end -= uint64(n)
		width -= n
	}
}

// andBytes sets dst to dst AND src. Both have the same length.
func andBytes(dst, src []byte) {
	for ; len(dst) >= 32 && len(src) >= 32; dst, src = dst[32:], src[32:] {
		d, s := dst[:32], src[:32]
		binary.NativeEndian.PutUint64(d, binary.NativeEndian.Uint64(d)&binary.NativeEndian.Uint64(s))
		binary.NativeEndian.PutUint64(d[8:], binary.NativeEndian.Uint64(d[8:])&binary.NativeEndian.Uint64(s[8:]))
		binary.NativeEndian.PutUint64(d[16:], binary.NativeEndian.Uint64(d[16:])&binary.NativeEndian.Uint64(s[16:]))
		binary.NativeEndian.PutUint64(d[24:], binary.NativeEndian.Uint64(d[24:])&binary.NativeEndian.Uint64(s[24:]))
	}
	for i := range dst {
		dst[i] &= src[i]
	}
}

// orBytes sets dst to dst OR src. Both have the same length.
func orBytes(dst, src []byte) {
	for ; len(dst) >= 32 && len(src) >= 32; dst, src = dst[32:], src[32:] {
		d, s := dst[:32], src[:32]
		binary.NativeEndian.PutUint64(d, binary.NativeEndian.Uint64(d)|binary.NativeEndian.Uint64(s))
		binary.NativeEndian.PutUint64(d[8:], binary.NativeEndian.Uint64(d[8:])|binary.NativeEndian.Uint64(s[8:]))
		binary.NativeEndian.PutUint64(d[16:], binary.NativeEndian.Uint64(d[16:])|binary.NativeEndian.Uint64(s[16:]))
		binary.NativeEndian.PutUint64(d[24:], binary.NativeEndian.Uint64(d[24:])|binary.NativeEndian.Uint64(s[24:]))
	}
	for i := range dst {
		dst[i] |= src[i]
	}
}

// andNotBytes clears in dst the bits that are set in src. Both have the same length.
func andNotBytes(dst, src []byte) {
	for ; len(dst) >= 32 && len(src) >= 32; dst, src = dst[32:], src[32:] {
		d, s := dst[:32], src[:32]
		binary.NativeEndian.PutUint64(d, binary.NativeEndian.Uint64(d)&^binary.NativeEndian.Uint64(s))
		binary.NativeEndian.PutUint64(d[8:], binary.NativeEndian.Uint64(d[8:])&^binary.NativeEndian.Uint64(s[8:]))
		binary.NativeEndian.PutUint64(d[16:], binary.NativeEndian.Uint64(d[16:])&^binary.NativeEndian.Uint64(s[16:]))
		binary.NativeEndian.PutUint64(d[24:], binary.NativeEndian.Uint64(d[24:])&^binary.NativeEndian.Uint64(s[24:]))
	}
	for i := range dst {
		dst[i] &^= src[i]
	}
}
