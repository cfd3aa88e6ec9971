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
	// version is that of Redis 7.0. Newer ones have other types of values, but the same strings.
	version    = 10
	maxVersion = 12

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
)

// AppendDump appends the payload of a value.
func AppendDump(dst, value []byte) []byte {
	begun := len(dst)
	if n, ok := smallInt(value); ok {
		dst = appendInt(append(dst, TypeString), n)
	} else {
		dst = append(AppendHead(dst, len(value)), value...)
	}
	return AppendFoot(dst, Sum(0, dst[begun:]))
}

// AppendHead appends the bytes before a value of n bytes that is stored uncompressed and as text,
// as all values of more than eleven bytes are.
func AppendHead(dst []byte, n int) []byte {
	dst = append(dst, TypeString)
	switch {
	case n < 1<<6:
		return append(dst, len6|byte(n))
	case n < 1<<14:
		return append(dst, len14|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, len32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, len64), uint64(n))
}

// AppendFoot appends the bytes behind the value; sum is the Sum of head and value.
func AppendFoot(dst []byte, sum uint64) []byte {
	var v [2]byte
	binary.LittleEndian.PutUint16(v[:], version)
	return binary.LittleEndian.AppendUint64(append(dst, v[:]...), Sum(sum, v[:]))
}

// smallInt returns the integer whose decimal form is value, if it fits 32 bits.
func smallInt(value []byte) (n int64, ok bool) {
	if len(value) > len("-2147483648") {
		return 0, false
	}
	n, err := strconv.ParseInt(string(value), 10, 32)
	var text [len("-2147483648")]byte
	return n, err == nil && bytes.Equal(strconv.AppendInt(text[:0], n, 10), value)
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

var table = crc64.MakeTable(0x95ac9329ac4bc9b5)

// Sum returns the checksum of b behind bytes whose checksum is sum, 0 for none: CRC-64 as defined
// by D. T. Jones, without the inversions that Go's package makes before and after.
func Sum(sum uint64, b []byte) uint64 { return ^crc64.Update(^sum, table, b) }

// Check returns ErrChecksum unless the payload is complete and of a version that can be read.
func Check(payload []byte) error {
	n := len(payload) - FootSize
	if n < 0 || binary.LittleEndian.Uint16(payload[n:]) > maxVersion ||
		binary.LittleEndian.Uint64(payload[n+2:]) != Sum(0, payload[:n+2]) {
		return ErrChecksum
	}
	return nil
}

// String is a string in a payload. It is a view of the payload, and valid as long as that does not
// change.
type String struct {
	length     int
	plain      []byte // nil if it is compressed
	compressed []byte
}

// Read returns the string in a payload that Check has accepted. Bytes between the string and the
// footer do not matter, as in Redis.
func Read(payload []byte) (s String, err error) {
	r := reader(payload[:len(payload)-FootSize])
	kind, ok := r.next(1)
	if !ok || kind[0] != TypeString {
		return s, ErrFormat
	}
	if len(r) > 0 && r[0] >= int8b {
		return r.encoded()
	}
	n, ok := r.length()
	if !ok {
		return s, ErrFormat
	}
	if s.plain, ok = r.next(n); !ok {
		return s, ErrFormat
	}
	s.length = len(s.plain)
	return s, nil
}

// Len returns the length of the string in bytes.
func (s *String) Len() int { return s.length }

// Sink receives a string, and gives access to the bytes already written.
type Sink interface {
	Write(piece []byte) error
	Value() []byte
}

// WriteTo appends the string to an empty sink, and returns the sink's error.
func (s *String) WriteTo(to Sink) error {
	if s.compressed == nil {
		return to.Write(s.plain)
	}
	return decompress(to, s.compressed)
}

// Append appends the string to dst.
func (s *String) Append(dst []byte) []byte {
	if s.compressed == nil {
		return append(dst, s.plain...)
	}
	b := buffer{dst, len(dst)}
	_ = decompress(&b, s.compressed) // a buffer has no errors
	return b.all
}

// buffer is a Sink in memory.
type buffer struct {
	all   []byte
	begun int
}

func (b *buffer) Write(piece []byte) error {
	b.all = append(b.all, piece...)
	return nil
}

func (b *buffer) Value() []byte { return b.all[b.begun:] }

// reader has the bytes that are left to read, and removes those it has read.
type reader []byte

func (r *reader) next(n int) (b []byte, ok bool) {
	if n < 0 || n > len(*r) {
		return nil, false
	}
	b = (*r)[:n:n]
	*r = (*r)[n:]
	return b, true
}

// length reads a length. ok is false if the bytes end, or if no payload can be so long.
func (r *reader) length() (n int, ok bool) {
	b, ok := r.next(1)
	if !ok {
		return 0, false
	}
	switch first := b[0]; {
	case first < len14:
		return int(first), true
	case first < len32:
		b, ok = r.next(1)
		if !ok {
			return 0, false
		}
		return int(first&^len14)<<8 | int(b[0]), true
	case first == len32:
		if b, ok = r.next(4); ok {
			return int(binary.BigEndian.Uint32(b)), true
		}
	case first == len64:
		if b, ok = r.next(8); ok && binary.BigEndian.Uint64(b) <= math.MaxInt64 {
			return int(binary.BigEndian.Uint64(b)), true
		}
	}
	return 0, false
}

// encoded reads an integer or a compressed string.
func (r *reader) encoded() (s String, err error) {
	kind, _ := r.next(1)
	if kind[0] == lzf {
		return r.compressed()
	}
	if kind[0] > int32b {
		return s, ErrFormat
	}
	b, ok := r.next(1 << (kind[0] - int8b))
	if !ok {
		return s, ErrFormat
	}
	n := int64(0)
	switch kind[0] {
	case int8b:
		n = int64(int8(b[0]))
	case int16b:
		n = int64(int16(binary.LittleEndian.Uint16(b)))
	case int32b:
		n = int64(int32(binary.LittleEndian.Uint32(b)))
	}
	s.plain = strconv.AppendInt(nil, n, 10)
	s.length = len(s.plain)
	return s, nil
}

func (r *reader) compressed() (s String, err error) {
	n, ok := r.length()
	if !ok {
		return s, ErrFormat
	}
	length, ok := r.length()
	if !ok {
		return s, ErrFormat
	}
	if s.compressed, ok = r.next(n); !ok || !decompressesTo(s.compressed, length) {
		return s, ErrFormat
	}
	s.length = length
	return s, nil
}
