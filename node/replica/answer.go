package replica

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A receiver answers every batch with the number of the last batch that it has applied:
//
//	:seq                               or, if it refuses partitions:
//	*2 :seq $partitions                two bytes each, little endian; or, if it lacks keys:
//	*3 :seq $partitions $keys          each with its section and its length in front, two bytes
//	                                   each, little endian; or, if its loops are strained:
//	*4 :seq $partitions $keys $1
//
// A receiver lacks a key if it was sent a change of a value that it does not have. Only members of
// ring.EffectsLevel send such changes, so only they are told of keys. Only in a cluster of
// ring.StrainLevel does a receiver say that it is strained.

// Answer is the answer to a batch.
type Answer struct {
	Seq     uint64   // the last batch that was applied
	Refused []uint16 // partitions
	Lacks   []byte   // keys, see AppendLack
	// Strained says that clients of the receiver have to wait: snapshots are to rest.
	Strained bool
}

const strainedWord = "$1\r\n1\r\n"

// Append appends the answer to dst.
func (a *Answer) Append(dst []byte) []byte {
	var fields int
	switch {
	case a.Strained:
		fields = 4
	case len(a.Lacks) > 0:
		fields = 3
	case len(a.Refused) > 0:
		fields = 2
	default:
		return resp.AppendInt(dst, int64(a.Seq))
	}
	dst = resp.AppendInt(resp.AppendArray(dst, fields), int64(a.Seq))
	dst = resp.AppendBulkHeader(dst, 2*len(a.Refused))
	for _, p := range a.Refused {
		dst = binary.LittleEndian.AppendUint16(dst, p)
	}
	dst = append(dst, "\r\n"...)
	if fields >= 3 {
		dst = resp.AppendBulk(dst, a.Lacks)
	}
	if a.Strained {
		dst = append(dst, strainedWord...)
	}
	return dst
}

// Parse reads an answer, which is one whole reply. It reuses a.Refused; a.Lacks is a view of reply.
// For an error reply it returns an error.
func (a *Answer) Parse(reply []byte) error {
	refused := a.Refused[:0]
	*a = Answer{Refused: refused}
	if resp.IsError(reply) {
		return fmt.Errorf("%q", strings.TrimSpace(string(reply[1:])))
	}
	number, rest, fields := reply, []byte(nil), 1
	for _, n := range []int{2, 3, 4} {
		if list, ok := bytes.CutPrefix(reply, resp.AppendArray(nil, n)); ok {
			fields = n
			number, rest, _ = bytes.Cut(list, []byte("\r\n"))
		}
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(number)), ":")
	seq, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("%q, want a number", reply)
	}
	a.Seq = seq
	var partitions []byte
	if fields > 1 {
		partitions, rest, ok = cutBulk(rest)
	}
	if ok && fields > 2 {
		a.Lacks, rest, ok = cutBulk(rest)
	}
	if ok && fields > 3 {
		rest, ok = bytes.CutPrefix(rest, []byte(strainedWord))
		a.Strained = ok
	}
	if !ok || len(rest) > 0 || len(partitions)%2 != 0 || !wholeLacks(a.Lacks) {
		return fmt.Errorf("%q, want a number, partitions and keys", reply)
	}
	for ; len(partitions) > 0; partitions = partitions[2:] {
		a.Refused = append(a.Refused, binary.LittleEndian.Uint16(partitions))
	}
	return nil
}

// cutBulk takes the bulk string that b begins with.
func cutBulk(b []byte) (bulk, rest []byte, ok bool) {
	line, after, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) < 2 || line[0] != '$' {
		return nil, b, false
	}
	n, err := strconv.ParseUint(string(line[1:]), 10, 31)
	if err != nil || int(n)+2 > len(after) {
		return nil, b, false
	}
	return after[:n], after[n+2:], true
}

const (
	lackHead = 4
	// LacksMost is how many bytes of keys an answer names at most. What is left out is asked for
	// with the next change of its value.
	LacksMost = 8 << 10
)

// AppendLack appends a key to those that a receiver lacks, unless it is there or there are too many.
func AppendLack(lacks []byte, section uint16, key []byte) []byte {
	if len(lacks)+lackHead+len(key) > LacksMost {
		return lacks
	}
	for rest := lacks; len(rest) > 0; {
		var q uint16
		var other []byte
		if q, other, rest = NextLack(rest); q == section && bytes.Equal(other, key) {
			return lacks
		}
	}
	lacks = binary.LittleEndian.AppendUint16(lacks, section)
	lacks = binary.LittleEndian.AppendUint16(lacks, uint16(len(key)))
	return append(lacks, key...)
}

// NextLack returns the first key of an Answer's Lacks, and those behind it.
func NextLack(lacks []byte) (section uint16, key, rest []byte) {
	n := lackHead + int(binary.LittleEndian.Uint16(lacks[2:]))
	return binary.LittleEndian.Uint16(lacks), lacks[lackHead:n], lacks[n:]
}

func wholeLacks(lacks []byte) bool {
	for len(lacks) >= lackHead {
		n := lackHead + int(binary.LittleEndian.Uint16(lacks[2:]))
		if n > len(lacks) {
			return false
		}
		lacks = lacks[n:]
	}
	return len(lacks) == 0
}
