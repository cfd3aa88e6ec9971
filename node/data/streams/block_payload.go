package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// A payload is what an entry has under its ID, from the outside: how many fields, and then their names and
// values in turn.
//
//	fields │ name │ value │ name │ value ...
//	uvarint  coded strings
//
// A coded string is one of shape's, or a longer one behind codeLong and its length, or codeOwn and the
// index of a string that is a part of its own: a very long one, which nobody copies. A payload of up to
// maxInside bytes stands in a block, any other one is a part.
const (
	codeLong = shape.FreeCodes + iota // uvarint length, bytes
	codeOwn                           // index

	maxInside  = 1024
	ownFrom    = 64 << 10 // bytes of a string that is a part of its own
	maxOwn     = 64       // of an entry: so many are freed at once
	maxPayload = 512<<20 - 64
)

// appendPayload appends the payload of fields and values. own gets the strings that are parts of their
// own.
func appendPayload(dst []byte, fields [][]byte, own [][]byte) (payload []byte, _ [][]byte) {
	dst = binary.AppendUvarint(dst, uint64(len(fields)/2))
	for _, s := range fields {
		switch {
		case len(s) <= shape.MaxCoded:
			dst = shape.AppendCoded(dst, s)
		case len(s) >= ownFrom && len(own) < maxOwn:
			dst = append(dst, codeOwn, byte(len(own)))
			own = append(own, s)
		default:
			dst = append(binary.AppendUvarint(append(dst, codeLong), uint64(len(s))), s...)
		}
	}
	return dst, own
}

// coded returns the string that b begins with and what is behind it. own is the index of a string that is
// a part of its own, otherwise -1. ok is false if b begins with no string.
func coded(b []byte) (s shape.Item, own int, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < codeLong {
		s, n, ok := shape.Coded(b)
		return s, -1, b[n:], ok
	}
	return codedLong(b)
}

func codedLong(b []byte) (s shape.Item, own int, rest []byte, ok bool) {
	switch {
	case len(b) < 2:
	case b[0] == codeOwn:
		return s, int(b[1]), b[2:], true
	case b[0] == codeLong:
		n, size := binary.Uvarint(b[1:])
		if b = b[1:]; size > 0 && n <= uint64(len(b)-size) {
			return shape.ViewItem(b[size : size+int(n)]), -1, b[size+int(n):], true
		}
	}
	return s, -1, nil, false
}

// fieldsOf returns how many fields a payload has, and its strings.
func fieldsOf(payload []byte) (n int, strings []byte, ok bool) {
	fields, size := binary.Uvarint(payload)
	if size <= 0 || fields > uint64(len(payload)) {
		return 0, nil, false
	}
	return int(fields), payload[size:], true
}

// checkPayload reports whether bytes of any content are a payload that stands in a block.
func checkPayload(payload []byte) bool {
	n, rest, ok := fieldsOf(payload)
	if !ok || n == 0 || len(payload) > maxInside {
		return false
	}
	for range 2 * n {
		var own int
		if _, own, rest, ok = coded(rest); !ok || own >= 0 {
			return false
		}
	}
	return len(rest) == 0
}
