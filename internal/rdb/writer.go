package rdb

import (
	"encoding/binary"
	"math"
)

// Form is how a collection is written: for each kind the oldest encoding, which every server reads.
type Form uint8

// The forms of payloads. There are three of hashes: without times, and with times of fields as
// Redis 7.4 and as Valkey 9 write them. Neither server reads the other one's.
const (
	FormList       Form = typeList
	FormSet        Form = typeSet
	FormSortedSet  Form = typeSortedSet
	FormHash       Form = typeHash
	FormHashRedis  Form = typeHashRedis
	FormHashValkey Form = typeHashValkey
)

func (f Form) version() uint16 {
	switch f {
	case FormHashRedis:
		return versionRedis
	case FormHashValkey:
		return versionValkey
	}
	return versionPlain
}

// Writer writes the payload of a collection in pieces: its head, its elements one by one, its foot.
// Each call appends, and the caller may send what it has before the next one.
type Writer struct {
	Form    Form
	Soonest int64 // in FormHashRedis, when the first field expires, in unix milliseconds

	sum uint64
}

// AppendHead appends what comes before n elements.
func (w *Writer) AppendHead(dst []byte, n int) []byte {
	begun := len(dst)
	dst = append(dst, byte(w.Form))
	if w.Form == FormHashRedis {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(w.Soonest))
	}
	return w.add(appendLength(dst, uint64(n)), begun)
}

// AppendElement appends an element.
func (w *Writer) AppendElement(dst []byte, x Element) []byte {
	begun := len(dst)
	if w.Form == FormHashRedis {
		ttl := uint64(0)
		if x.ExpireAt != 0 {
			ttl = uint64(x.ExpireAt-w.Soonest) + 1
		}
		dst = appendLength(dst, ttl)
	}
	dst = appendString(dst, x.First)
	switch w.Form {
	case FormHash, FormHashRedis, FormHashValkey:
		dst = appendString(dst, x.Second)
	case FormSortedSet:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x.Score))
	}
	if w.Form == FormHashValkey {
		at := x.ExpireAt
		if at == 0 {
			at = noExpiry
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	}
	return w.add(dst, begun)
}

// AppendFoot appends what comes behind the elements.
func (w *Writer) AppendFoot(dst []byte) []byte { return appendFoot(dst, w.sum, w.Form.version()) }

// add takes into the checksum what was appended.
func (w *Writer) add(dst []byte, begun int) []byte {
	w.sum = Sum(w.sum, dst[begun:])
	return dst
}
