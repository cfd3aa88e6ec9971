package rdb

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// How entries of listpacks are written: see pack.listpackItem for the encodings.

// appendPackInt appends an integer as an entry of a listpack.
func appendPackInt(dst []byte, n int64) []byte {
	begun := len(dst)
	switch {
	case 0 <= n && n <= math.MaxInt8:
		dst = append(dst, byte(n))
	case -1<<12 <= n && n < 1<<12:
		dst = append(dst, 0xc0|byte(n>>8)&0x1f, byte(n))
	case math.MinInt16 <= n && n <= math.MaxInt16:
		dst = binary.LittleEndian.AppendUint16(append(dst, 0xf1), uint16(n))
	case -1<<23 <= n && n < 1<<23:
		dst = append(dst, 0xf2, byte(n), byte(n>>8), byte(n>>16))
	case math.MinInt32 <= n && n <= math.MaxInt32:
		dst = binary.LittleEndian.AppendUint32(append(dst, 0xf3), uint32(n))
	default:
		dst = binary.LittleEndian.AppendUint64(append(dst, 0xf4), uint64(n))
	}
	return appendBacklen(dst, len(dst)-begun)
}

// appendPackHead appends what comes before a string of n bytes that is an entry of a listpack.
func appendPackHead(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, 0x80|byte(n))
	case n < 1<<12:
		return append(dst, 0xe0|byte(n>>8), byte(n))
	}
	return binary.LittleEndian.AppendUint32(append(dst, 0xf0), uint32(n))
}

// packHeadSize is how many bytes appendPackHead appends.
func packHeadSize(n int) int {
	switch {
	case n < 1<<6:
		return 1
	case n < 1<<12:
		return 2
	}
	return 5
}

// backlenSize is how many bytes the length of an entry takes, which stands behind it.
func backlenSize(size int) int {
	if size <= 127 { // most are
		return 1
	}
	n := 1
	for _, most := range [...]int{127, 16_382, 2_097_150, 268_435_454} {
		if size > most {
			n++
		}
	}
	return n
}

// appendBacklen appends the length of an entry: 7 bits a byte, the highest first. All bytes but the
// first have their highest bit set.
func appendBacklen(dst []byte, size int) []byte {
	n := backlenSize(size)
	if n == 1 {
		return append(dst, byte(size))
	}
	for i := n - 1; i >= 0; i-- {
		b := byte(size>>(7*i)) & 0x7f
		if i < n-1 {
			b |= 0x80
		}
		dst = append(dst, b)
	}
	return dst
}

// appendPackString appends a string as an entry of a listpack: as an integer if it is one's text.
func appendPackString(dst, s []byte) []byte {
	if n, ok := packInt(s); ok {
		return appendPackInt(dst, n)
	}
	dst = append(appendPackHead(dst, len(s)), s...)
	return appendBacklen(dst, packHeadSize(len(s))+len(s))
}

// packStringSize is how many bytes appendPackString appends.
func packStringSize(s []byte) int {
	if _, ok := packInt(s); ok {
		var memory [maxPackInt]byte
		return len(appendPackString(memory[:0], s))
	}
	size := packHeadSize(len(s)) + len(s)
	return size + backlenSize(size)
}

// maxPackInt is how many bytes an integer takes at most.
const maxPackInt = 1 + 8 + 1

// packInt returns the integer whose decimal form is s.
func packInt(s []byte) (n int64, ok bool) {
	if len(s) > maxInt64Text || !isDecimal(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	var text [maxInt64Text]byte
	return n, err == nil && bytes.Equal(strconv.AppendInt(text[:0], n, 10), s)
}
