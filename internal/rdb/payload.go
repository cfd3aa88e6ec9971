package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc64"
	"math"
	"strconv"
)

const (
	TypeString = 0 // the code with which a string's payload begins

	// MaxHead is the most bytes that AppendHead appends. FootSize is how many AppendFoot appends.
	MaxHead  = 1 + 1 + 8
	FootSize = 2 + 8
)

// Errors about a payload.
var (
	ErrChecksum = errors.New("version or checksum are wrong")
	ErrFormat   = errors.New("bad data format")
)

// The first byte of a length or a string.
const (
	len6   = 0x00
	len14  = 0x40
	len32  = 0x80
	len64  = 0x81
	int8b  = 0xc0
	int16b = 0xc1
	int32b = 0xc2
	lzf    = 0xc3

	maxInt32Text = len("-2147483648")
)

// AppendDump appends the payload of a value.
func AppendDump(dst, value []byte) []byte {
	begun := len(dst)
	dst = appendString(append(dst, TypeString), value)
	return AppendFoot(dst, Sum(0, dst[begun:]))
}

// AppendHead appends the bytes before a value of n bytes that is stored uncompressed and as text,
// as all values of more than eleven bytes are.
func AppendHead(dst []byte, n int) []byte {
	return appendLength(append(dst, TypeString), uint64(n))
}

func appendLength(dst []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(dst, len6|byte(n))
	case n < 1<<14:
		return append(dst, len14|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, len32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, len64), n)
}

// appendString appends a string as it stands in a value.
func appendString(dst, s []byte) []byte {
	if n, ok := smallInt(s); ok {
		return appendInt(dst, n)
	}
	return append(appendLength(dst, uint64(len(s))), s...)
}

// AppendFoot appends the bytes behind a string; sum is the Sum of head and value.
func AppendFoot(dst []byte, sum uint64) []byte { return appendFoot(dst, sum, versionPlain) }

func appendFoot(dst []byte, sum uint64, version uint16) []byte {
	var v [2]byte
	binary.LittleEndian.PutUint16(v[:], version)
	return binary.LittleEndian.AppendUint64(append(dst, v[:]...), Sum(sum, v[:]))
}

// smallInt returns the integer whose decimal form is value, if it fits 32 bits.
func smallInt(value []byte) (n int64, ok bool) {
	if len(value) > maxInt32Text || !isDecimal(value) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	var text [maxInt32Text]byte
	return n, err == nil && n == int64(int32(n)) && bytes.Equal(strconv.AppendInt(text[:0], n, 10), value)
}

// isDecimal reports whether s may be the decimal form of an integer. For what is none strconv makes an error, which
// is garbage for each string of a value.
func isDecimal(s []byte) bool {
	for i, c := range s {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return len(s) > 0
}

func appendInt(dst []byte, n int64) []byte {
	switch {
	case math.MinInt8 <= n && n <= math.MaxInt8:
		return append(dst, int8b, byte(n))
	case math.MinInt16 <= n && n <= math.MaxInt16:
		return binary.LittleEndian.AppendUint16(append(dst, int16b), uint16(n))
	}
	return binary.LittleEndian.AppendUint32(append(dst, int32b), uint32(n))
}

var table = crc64.MakeTable(generator)

// Sum returns the checksum of b behind bytes whose checksum is sum, 0 for none: CRC-64 as defined
// by D. T. Jones, without the inversions that Go's package makes before and after.
func Sum(sum uint64, b []byte) uint64 { return ^crc64.Update(^sum, table, b) }

// Check returns ErrChecksum unless the payload is complete and of a version that can be read.
func Check(payload []byte) error {
	n := len(payload) - FootSize
	if n < 0 || dialectOf(binary.LittleEndian.Uint16(payload[n:])) == unknown ||
		binary.LittleEndian.Uint64(payload[n+2:]) != Sum(0, payload[:n+2]) {
		return ErrChecksum
	}
	return nil
}
