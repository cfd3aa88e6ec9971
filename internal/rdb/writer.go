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

// ForValkey is the form as Valkey reads it.
func (f Form) ForValkey() Form {
	if f == FormHashRedis {
		return FormHashValkey
	}
	return f
}

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
	dst, last := w.appendFront(dst, x)
	dst = w.appendBack(appendString(dst, last), x)
	return w.add(dst, begun)
}

// AppendLong appends what an element has in front of its last string, which is longer than a number, and
// returns that string. The caller calls Pass for the string, in pieces, and then AppendBehind.
func (w *Writer) AppendLong(dst []byte, x Element) (_, last []byte) {
	begun := len(dst)
	dst, last = w.appendFront(dst, x)
	dst = appendLength(dst, uint64(len(last)))
	return w.add(dst, begun), last
}

// Pass takes into the checksum what the caller appends itself.
func (w *Writer) Pass(piece []byte) { w.sum = Sum(w.sum, piece) }

// AppendBehind appends what an element has behind its last string.
func (w *Writer) AppendBehind(dst []byte, x Element) []byte {
	begun := len(dst)
	return w.add(w.appendBack(dst, x), begun)
}

// appendFront appends what an element has in front of its last string.
func (w *Writer) appendFront(dst []byte, x Element) (_, last []byte) {
	if w.Form == FormHashRedis {
		ttl := uint64(0)
		if x.ExpireAt != 0 {
			ttl = uint64(x.ExpireAt-w.Soonest) + 1
		}
		dst = appendLength(dst, ttl)
	}
	switch w.Form {
	case FormHash, FormHashRedis, FormHashValkey:
		return appendString(dst, x.First), x.Second
	}
	return dst, x.First
}

// appendBack appends what an element has behind its last string.
func (w *Writer) appendBack(dst []byte, x Element) []byte {
	switch w.Form {
	case FormSortedSet:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x.Score))
	case FormHashValkey:
		at := x.ExpireAt
		if at == 0 {
			at = noExpiry
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	}
	return dst
}

// AppendFoot appends what comes behind the elements.
func (w *Writer) AppendFoot(dst []byte) []byte { return appendFoot(dst, w.sum, w.Form.version()) }

// add takes into the checksum what was appended.
func (w *Writer) add(dst []byte, begun int) []byte {
	w.sum = Sum(w.sum, dst[begun:])
	return dst
}
