package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// sortedType is the type of sorted sets. Geo's values are sorted sets too.
var sortedType = exec.Type{
	ID:          engine.TypeZSet,
	Name:        "zset",
	Encoding:    encoding,
	Footprint:   engine.Txn.Footprint,
	Collection:  &collection,
	MaxEffect:   shape.MaxPacked + 16,
	CheckRecord: checkRecord,
	Form:        engine.Form{Apply: apply, Dump: dump},
	Level:       ring.CollectionsLevel,
}

// encoding returns what Redis would call a sorted set with these members. It may have another one for
// a set that was larger before.
func encoding(t engine.Txn, item engine.Item, limits exec.Encodings) string {
	s, name := viewOf(t, item), "listpack"
	if s.Len() > limits.ZSetEntries {
		return "skiplist"
	}
	s.Each(Span{to: min(s.Len(), exec.EncodingLook)}, func(member shape.Item, _ float64) bool {
		if member.Len() > limits.ZSetValue {
			name = "skiplist"
		}
		return name == "listpack"
	})
	return name
}

func checkRecord(value []byte) error { return shape.CheckPacked(&shape.PackedZSet, value) }

// apply applies a delta: members with their scores, and members that were removed.
func apply(v engine.Parts, delta []byte) error {
	b := openBig(v, nil)
	defer b.tree.Verify()
	return shape.EachChange(delta, func(member, value []byte) error {
		score, ok := readScore(value)
		if !ok {
			return shape.ErrMalformed
		}
		old, there := b.tree.Lookup(member)
		return b.set(member, old, there, score)
	}, func(member []byte) {
		if s, ok := b.tree.Lookup(member); ok {
			b.tree.CutAt(s)
		}
	})
}

func dump(v engine.Parts, from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool) {
	b := openBig(v, nil)
	return b.tree.Dump(from, dst, atMost, func(dst []byte, x shape.Entry) []byte {
		var number shape.Decimal
		var room [scoreRoom]byte
		return shape.AppendSet(dst, x.First.Text(&number), appendScore(room[:0], scoreOf(x.Rank)))
	})
}
