package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// ErrTooLong is the error for a compressed string in a collection that is longer than maxUnpacked,
// or for which Elements.Room had no memory.
var ErrTooLong = errors.New("a compressed string is too long")

// Element is an element of a collection: an entry of a list, a member of a set or sorted set, or a
// field of a hash. Its strings are valid until the next call of Next.
type Element struct {
	First    []byte
	Second   []byte  // the value of a field
	Score    float64 // of a member of a sorted set, never NaN
	ExpireAt int64   // of a field, in unix milliseconds; 0: never
}

// Elements reads the elements of a collection from a payload, one after the other. A payload comes
// from a client, and may declare anything. So the caller finds elements that are there twice, and
// reads no more of them than it has room for. Elements takes memory only for compressed strings:
// twice the length of the longest one at most for each string of an element, and for the pack that
// it is in. It takes none because of a length that a payload declares.
type Elements struct {
	Memory

	kind    Kind
	code    byte
	in      reader // what is left of the payload
	left    uint64 // elements that are still to come, or packs
	soonest int64  // when the first field expires
	pack    pack   // if isOpen
	isOpen  bool
	some    bool // an element was read
	err     error

	// Memory for strings that do not lie in the payload as they are.
	first, second, packed []byte
}

// ReadElements begins to read a collection from a payload that Check has accepted. The payload must
// not change. The errors are those of KindOf, and ErrFormat for a string and a stream.
func ReadElements(payload []byte) (*Elements, error) {
	kind, err := KindOf(payload)
	if err == nil && (kind == KindString || kind == KindStream) {
		err = ErrFormat
	}
	if err != nil {
		return nil, err
	}
	e := &Elements{kind: kind, code: payload[0], in: payload[1 : len(payload)-FootSize]}
	ok := true
	if e.code == typeHashRedis || e.code == typeHashTimedRedis {
		var b []byte
		if b, ok = e.in.next(8); ok {
			e.soonest = int64(binary.LittleEndian.Uint64(b))
		}
	}
	e.left = 1
	if ok && !e.isOnePack() {
		e.left, ok = e.in.number()
	}
	if !ok || e.left == 0 {
		return nil, ErrFormat
	}
	return e, nil
}

// isOnePack reports whether the value is one packed string.
func (e *Elements) isOnePack() bool {
	switch e.code {
	case typeZipmap, typeListZiplist, typeIntset, typeZiplist, typeHashZiplist, typeHashListpack, typeListpack,
		typeSetListpack, typeHashTimedRedis:
		return true
	}
	return false
}

// isPlain reports whether each element stands by itself in the payload.
func (e *Elements) isPlain() bool {
	switch e.code {
	case typeList, typeSet, typeSortedSetText, typeHash, typeSortedSet, typeHashValkey, typeHashRedis:
		return true
	}
	return false
}

// Kind is the kind of the collection.
func (e *Elements) Kind() Kind { return e.kind }

// Err is the error that ended the elements: ErrFormat or ErrTooLong, nil if they are complete.
func (e *Elements) Err() error { return e.err }

// Next reads an element. ok is false behind the last one, and after an error, see Err.
func (e *Elements) Next() (x Element, ok bool) {
	for empty := 0; e.err == nil && empty <= maxEmpty; empty++ {
		if e.isOpen {
			x, more, ok := e.unpack()
			if more || !ok {
				return e.done(x, ok)
			}
			e.isOpen = false
		}
		if e.left == 0 {
			if !e.some {
				e.fail() // an empty collection is none
			}
			return Element{}, false
		}
		e.left--
		if e.isPlain() {
			x, ok = e.plain()
			return e.done(x, ok)
		}
		if x.First, ok = e.open(); !ok || !e.isOpen {
			return e.done(x, ok)
		}
	}
	e.fail()
	return Element{}, false
}

// maxEmpty is how many empty packs may follow one another in a list. Redis skips them: some of its
// versions wrote one or two.
const maxEmpty = 16

func (e *Elements) done(x Element, ok bool) (Element, bool) {
	if !ok {
		e.fail()
		return Element{}, false
	}
	e.some = true
	return x, true
}

func (e *Elements) fail() {
	if e.err == nil {
		e.err = ErrFormat
	}
}

// plain reads an element whose strings follow one another in the payload.
func (e *Elements) plain() (x Element, ok bool) {
	ttl := uint64(0)
	if e.code == typeHashRedis {
		if ttl, ok = e.in.number(); !ok || ttl > math.MaxInt64 {
			return x, false
		}
		if ttl > 0 && e.soonest > math.MaxInt64-int64(ttl) {
			return x, false
		}
	}
	if x.First, ok = e.string(&e.first); !ok {
		return x, false
	}
	switch e.code {
	case typeHash, typeHashRedis, typeHashValkey:
		x.Second, ok = e.string(&e.second)
	case typeSortedSet:
		var b []byte
		if b, ok = e.in.next(8); ok {
			x.Score = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case typeSortedSetText:
		x.Score, ok = e.scoreText()
	}
	if ttl > 0 {
		x.ExpireAt = e.soonest + int64(ttl) - 1
		ok = ok && x.ExpireAt > 0
	}
	if ok && e.code == typeHashValkey {
		var b []byte
		if b, ok = e.in.next(8); ok {
			x.ExpireAt = int64(binary.LittleEndian.Uint64(b))
			if x.ExpireAt == noExpiry {
				x.ExpireAt = 0
			} else if x.ExpireAt <= 0 {
				ok = false
			}
		}
	}
	return x, ok && !math.IsNaN(x.Score)
}

// noExpiry is the time of a field that never expires, in Valkey's format.
const noExpiry = -1

// Lengths of the text of a score that stand for a number.
const (
	scoreNaN      = 253
	scoreInf      = 254
	scoreMinusInf = 255
)

// scoreText reads a score of the oldest format of sorted sets.
func (e *Elements) scoreText() (score float64, ok bool) {
	n, ok := e.in.next(1)
	if !ok || n[0] == scoreNaN {
		return 0, false
	}
	switch n[0] {
	case scoreInf:
		return math.Inf(1), true
	case scoreMinusInf:
		return math.Inf(-1), true
	}
	text, ok := e.in.next(int(n[0]))
	if !ok {
		return 0, false
	}
	return parseScore(text)
}

func parseScore(text []byte) (score float64, ok bool) {
	if bytes.IndexByte(text, '_') >= 0 { // which Go allows between digits
		return 0, false
	}
	score, err := strconv.ParseFloat(string(text), 64)
	return score, (err == nil || errors.Is(err, strconv.ErrRange)) && !math.IsNaN(score)
}

// string reads a string: a view of the payload, or what it is in memory.
func (e *Elements) string(memory *[]byte) (s []byte, ok bool) {
	s, err := e.Memory.string(&e.in, memory)
	if err != nil {
		e.err = err
	}
	return s, err == nil
}

// open opens the next pack, or returns an entry of a list that is in none.
func (e *Elements) open() (entry []byte, ok bool) {
	f := formListpack
	switch e.code {
	case typeQuicklist2:
		container, ok := e.in.number()
		if !ok || container != plainNode && container != packedNode {
			return nil, false
		}
		if container == plainNode {
			return e.string(&e.first)
		}
	case typeQuicklist, typeListZiplist, typeZiplist, typeHashZiplist:
		f = formZiplist
	case typeZipmap:
		f = formZipmap
	case typeIntset:
		f = formIntset
	}
	b, ok := e.string(&e.packed)
	if !ok || !e.pack.open(f, b) {
		return nil, false
	}
	e.isOpen = true
	return nil, true
}

// Containers of a quicklist.
const (
	plainNode  = 1
	packedNode = 2
)

// unpack reads an element from the open pack. more is false behind the last one.
func (e *Elements) unpack() (x Element, more, ok bool) {
	first, more, ok := e.pack.next(&e.first)
	if !ok || !more {
		return x, more, ok
	}
	x.First = first
	switch e.kind {
	case KindHash, KindSortedSet:
		x.Second, more, ok = e.pack.next(&e.second)
		if !ok || !more {
			return x, true, false
		}
	}
	if e.kind == KindSortedSet {
		x.Score, ok = parseScore(x.Second)
		x.Second = nil
	}
	if e.code == typeHashTimedRedis {
		var memory [maxInt64Text]byte
		text := memory[:0]
		ttl, more, isText := e.pack.next(&text)
		if !isText || !more {
			return x, true, false
		}
		at, err := strconv.ParseInt(string(ttl), 10, 64)
		if err != nil || at < 0 {
			return x, true, false
		}
		x.ExpireAt = at
	}
	return x, true, ok
}

const maxInt64Text = len("-9223372036854775808")
