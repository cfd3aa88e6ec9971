package sets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// setType is the type of sets.
var setType = exec.Type{
	ID:          engine.TypeSet,
	Name:        "set",
	Encoding:    encoding,
	Footprint:   engine.Txn.Footprint,
	Collection:  &collection,
	MaxEffect:   shape.MaxPacked + 1, // with the flags
	CheckRecord: func(value []byte) error { return shape.CheckPacked(&shape.PackedSet, value) },
	Form:        engine.Form{Apply: apply, Dump: dump},
	Level:       ring.CollectionsLevel,
}

// encoding returns what Redis would call a set with these members. It may have another one for a
// set that was larger before.
func encoding(t engine.Txn, item engine.Item, limits exec.Encodings) string {
	s := setOf(t, item)
	if s.length() > max(limits.SetInts, limits.SetEntries) {
		return "hashtable"
	}
	ints, longest, looked := true, 0, 0
	for place, done := 0, false; !done && looked < exec.EncodingLook; place++ {
		done = s.piece(place, func(member shape.Item) {
			_, isInt := member.Int()
			ints, longest = ints && isInt, max(longest, member.Len())
			looked++
		})
	}
	switch {
	case ints && s.length() <= limits.SetInts:
		return "intset"
	case s.length() <= limits.SetEntries && longest <= limits.SetValue:
		return "listpack"
	}
	return "hashtable"
}

// blocks is the plane of a set with parts that has its members. Its own bytes are those of the
// table.
const blocks = shape.SetBlocks

// tableOf is the table of a set with parts.
func tableOf(v engine.Parts) shape.Table { return shape.SetTable(v) }

func apply(v engine.Parts, delta []byte) error {
	t := tableOf(v)
	_, err := t.Apply(delta)
	return err
}

func dump(v engine.Parts, from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool) {
	t := tableOf(v)
	return t.Dump(from, dst, atMost)
}
