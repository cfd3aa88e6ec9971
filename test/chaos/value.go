package chaos

import (
	"bytes"
	"fmt"
	"strconv"
)

// A form says how a key, or an element of a collection, shows its last write.
type form uint8

const (
	// A value names its key and write. Its length differs from write to write, so that bytes of
	// another reply never look right.
	long    form = iota
	brief        // like long, with a few bytes only
	score        // the number of the write
	present      // only that the last write is no deletion
	huge         // like long, with tens of KB
)

// value returns what write seq stores.
func (h *History) value(seq uint64) []byte {
	switch h.form {
	case brief:
		return appendFilled(nil, h.Key, seq, int(seq%13))
	case huge:
		return appendFilled(nil, h.Key, seq, hugeFiller+int(seq*31%700))
	case score:
		return strconv.AppendUint(nil, seq, 10)
	case present:
		return nil
	}
	return AppendValue(nil, h.Key, seq)
}

// parseLocked returns the write that a read shows; of what is only present, the latest that it may
// be.
func (h *History) parseLocked(s sight, shown []byte) (seq uint64, err error) {
	switch h.form {
	case score:
		seq, err = strconv.ParseUint(string(shown), 10, 64)
		if err != nil || seq == 0 {
			return 0, fmt.Errorf("%s shows %.60q, which is no write of it", h.Key, shown)
		}
		return seq, nil
	case present:
		for seq = h.issuedLocked(); seq > h.Dropped; seq-- {
			if !h.refused[seq] && !h.deletes[seq] && !s.undone.has(seq) {
				return seq, nil
			}
		}
		return 0, fmt.Errorf("%s is there, which was never added", h.Key)
	}
	return h.parseFilled(shown)
}

// LargeEvery says which values are too large for the common lane: one in this many.
const LargeEvery = 97

// hugeFiller is less than what is staged in pieces.
const hugeFiller = 40 << 10

func fillerLen(seq uint64) int {
	if seq%LargeEvery == 0 {
		return 80 << 10
	}
	return int(seq*31%700) + 1
}

// AppendValue appends the value of the key's write seq to dst: key, number, and bytes that follow
// from the number, so that a test recognizes a wrong or mixed value.
func AppendValue(dst []byte, key string, seq uint64) []byte {
	return appendFilled(dst, key, seq, fillerLen(seq))
}

func appendFilled(dst []byte, key string, seq uint64, filler int) []byte {
	dst = append(dst, key...)
	dst = append(dst, '=')
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, '=')
	return append(dst, bytes.Repeat([]byte{'a' + byte(seq%26)}, filler)...)
}

func (h *History) parseFilled(value []byte) (seq uint64, err error) {
	fields := bytes.SplitN(value, []byte("="), 3)
	if len(fields) != 3 || string(fields[0]) != h.Key {
		return 0, fmt.Errorf("%s shows %.60q, which is no value of it", h.Key, value)
	}
	seq, err = strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil || seq == 0 || !bytes.Equal(value, h.value(seq)) {
		return 0, fmt.Errorf("%s shows %.60q (%d bytes), which was damaged", h.Key, value, len(value))
	}
	return seq, nil
}
