package keyevent

import (
	"bytes"
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

// What the names of the channels begin with. There is one database.
const (
	keyspacePrefix = "__keyspace@0__:"
	keyeventPrefix = "__keyevent@0__:"
)

// AppendKeyspace appends the name of the channel that brings the events of a key.
func AppendKeyspace(dst, key []byte) []byte { return append(append(dst, keyspacePrefix...), key...) }

// AppendKeyevent appends the name of the channel that brings the keys of an event.
func AppendKeyevent(dst []byte, event string) []byte {
	return append(append(dst, keyeventPrefix...), event...)
}

// IsChannel reports whether notifications are published on a channel of that name.
func IsChannel(name []byte) bool {
	return bytes.HasPrefix(name, []byte(keyspacePrefix)) || bytes.HasPrefix(name, []byte(keyeventPrefix))
}
