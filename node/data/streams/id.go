package streams

import (
	"encoding/binary"
	"math"
	"strconv"
)

// ID names an entry of a stream: the time in unix milliseconds, and a number among the entries of that time.
type ID struct{ Ms, Seq uint64 }

// The least and the greatest ID. Only a RESTORE brings an entry with the least.
var (
	minID = ID{}
	maxID = ID{math.MaxUint64, math.MaxUint64}
)

// compare returns -1, 0 or 1.
func (id ID) compare(with ID) int {
	switch {
	case id == with:
		return 0
	case id.less(with):
		return -1
	}
	return 1
}

func (id ID) less(than ID) bool { return id.Ms < than.Ms || id.Ms == than.Ms && id.Seq < than.Seq }

func (id ID) isZero() bool { return id == ID{} }

// next returns the ID behind id; ok is false for the greatest one, which is returned again.
func (id ID) next() (next ID, ok bool) {
	switch {
	case id.Seq < math.MaxUint64:
		return ID{id.Ms, id.Seq + 1}, true
	case id.Ms < math.MaxUint64:
		return ID{id.Ms + 1, 0}, true
	}
	return id, false
}

// prev returns the ID in front of id; ok is false for the least one, which is returned again.
func (id ID) prev() (prev ID, ok bool) {
	switch {
	case id.Seq > 0:
		return ID{id.Ms, id.Seq - 1}, true
	case id.Ms > 0:
		return ID{id.Ms - 1, math.MaxUint64}, true
	}
	return id, false
}

// idLen is the length of the longest ID as clients see it.
const idLen = 41

// appendID appends an ID as clients see it.
func appendID(dst []byte, id ID) []byte {
	dst = strconv.AppendUint(dst, id.Ms, 10)
	return strconv.AppendUint(append(dst, '-'), id.Seq, 10)
}

// A raw ID has 16 bytes in the order of IDs.
const rawIDLen = 16

func putRawID(dst []byte, id ID) {
	binary.BigEndian.PutUint64(dst, id.Ms)
	binary.BigEndian.PutUint64(dst[8:], id.Seq)
}

func rawID(b []byte) ID { return ID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])} }
