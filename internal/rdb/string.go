package rdb

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

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
	if len(r) > 0 && r[0] >= int8b && r[0] < lzf {
		var text [maxInt32Text]byte
		b, ok := r.text(text[:0])
		if !ok {
			return s, ErrFormat
		}
		s.plain, s.length = bytes.Clone(b), len(b)
		return s, nil
	}
	return r.string()
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

// length reads the length of a string. ok is false if the bytes end, or if no payload can be so
// long.
func (r *reader) length() (n int, ok bool) {
	long, ok := r.number()
	return int(long), ok && long <= math.MaxInt64
}

// number reads a number as lengths are written. ok is false if the bytes end.
func (r *reader) number() (n uint64, ok bool) {
	b, ok := r.next(1)
	if !ok {
		return 0, false
	}
	switch first := b[0]; {
	case first < len14:
		return uint64(first), true
	case first < len32:
		b, ok = r.next(1)
		if !ok {
			return 0, false
		}
		return uint64(first&^len14)<<8 | uint64(b[0]), true
	case first == len32:
		if b, ok = r.next(4); ok {
			return uint64(binary.BigEndian.Uint32(b)), true
		}
	case first == len64:
		if b, ok = r.next(8); ok {
			return binary.BigEndian.Uint64(b), true
		}
	}
	return 0, false
}

// string reads a string that is not an integer.
func (r *reader) string() (s String, err error) {
	if len(*r) > 0 && (*r)[0] == lzf {
		r.next(1)
		return r.compressed()
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

// text reads a string that is an integer, and appends its decimal form to dst.
func (r *reader) text(dst []byte) (text []byte, ok bool) {
	kind, ok := r.next(1)
	if !ok || kind[0] < int8b || kind[0] > int32b {
		return dst, false
	}
	b, ok := r.next(1 << (kind[0] - int8b))
	if !ok {
		return dst, false
	}
	return strconv.AppendInt(dst, littleInt(b), 10), true
}

// littleInt is the signed integer of 1 to 8 bytes, the lowest first.
func littleInt(b []byte) int64 {
	n := uint64(0)
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(n<<shift) >> shift
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
