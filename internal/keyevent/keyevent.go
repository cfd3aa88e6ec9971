package keyevent

import (
	"bytes"
	"strconv"
	"strings"
)

// Class is a set of classes of notifications.
type Class uint32

// Keyspace and Keyevent say on which channels events are published, the other classes which events.
const (
	Keyspace Class = 1 << iota
	Keyevent
	Generic
	String
	List
	Set
	Hash
	SortedSet
	Expired
	Evicted
	Stream
	Module
	KeyMiss
	New
)

// all is what A stands for.
const all = Generic | String | List | Set | Hash | SortedSet | Expired | Evicted | Stream | Module

// letters are Redis's, in the order in which it writes them behind A.
var letters = []struct {
	letter byte
	class  Class
}{
	{'g', Generic}, {'$', String}, {'l', List}, {'s', Set}, {'h', Hash}, {'z', SortedSet}, {'x', Expired},
	{'e', Evicted}, {'t', Stream}, {'d', Module}, {'n', New}, {'K', Keyspace}, {'E', Keyevent}, {'m', KeyMiss},
}

// Parse reads letters of classes. It reports false if there is an unknown one.
func Parse(text string) (c Class, ok bool) {
	for i := range len(text) {
		class := Class(0)
		for _, l := range letters {
			if l.letter == text[i] {
				class = l.class
			}
		}
		if text[i] == 'A' {
			class = all
		}
		if class == 0 {
			return 0, false
		}
		c |= class
	}
	return c, true
}

// String writes the letters of classes as Redis does. But Redis leaves out n beside A.
func (c Class) String() string {
	var b strings.Builder
	hidden := Class(0)
	if c&all == all {
		b.WriteByte('A')
		hidden = all
	}
	for _, l := range letters {
		if c&l.class&^hidden != 0 {
			b.WriteByte(l.letter)
		}
	}
	return b.String()
}

// Active returns which events are to be published: none if no channel is.
func (c Class) Active() Class {
	if c&(Keyspace|Keyevent) == 0 {
		return 0
	}
	return c
}

// What the name of a channel is made of: a beginning, the number of the database and an end, before the key or the
// event.
const (
	keyspacePrefix = "__keyspace@"
	keyeventPrefix = "__keyevent@"
	prefixEnd      = "__:"
)

// AppendKeyspace appends the name of the channel that brings the events of a key of a database.
func AppendKeyspace(dst []byte, database uint8, key []byte) []byte {
	return append(appendPrefix(dst, keyspacePrefix, database), key...)
}

// AppendKeyevent appends the name of the channel that brings the keys of an event in a database.
func AppendKeyevent(dst []byte, database uint8, event string) []byte {
	return append(appendPrefix(dst, keyeventPrefix, database), event...)
}

func appendPrefix(dst []byte, begin string, database uint8) []byte {
	return append(strconv.AppendUint(append(dst, begin...), uint64(database), 10), prefixEnd...)
}

// maxDatabase is the highest number of a database.
const maxDatabase = 15

// Channel returns the database whose notifications are published on a channel of that name. It reports false if none
// are.
func Channel(name []byte) (database uint8, ok bool) {
	rest, ok := bytes.CutPrefix(name, []byte(keyspacePrefix))
	if !ok {
		rest, ok = bytes.CutPrefix(name, []byte(keyeventPrefix))
	}
	number, _, whole := bytes.Cut(rest, []byte(prefixEnd))
	if !ok || !whole || len(number) == 0 || len(number) > 2 || number[0] == '0' && len(number) > 1 {
		return 0, false
	}
	for _, digit := range number {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		database = database*10 + digit - '0'
	}
	return database, database <= maxDatabase
}

// IsChannel reports whether notifications are published on a channel of that name.
func IsChannel(name []byte) bool {
	_, ok := Channel(name)
	return ok
}
