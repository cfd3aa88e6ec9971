package lists

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// listType is the type of lists.
var listType = exec.Type{
	ID:          engine.TypeList,
	Name:        "list",
	Encoding:    encoding,
	Footprint:   engine.Txn.Footprint,
	Collection:  &collection,
	MaxEffect:   shape.MaxPackedList + 64,
	CheckRecord: func(value []byte) error { return shape.CheckPacked(&shape.PackedList, value) },
	Form:        shape.ListForm,
	Level:       ring.CollectionsLevel,
}

// listpackBytes is the longest listpack that Redis makes of a list, by the default of
// list-max-listpack-size.
const listpackBytes = 8 << 10

// encoding returns what Redis would call such a value. A listpack takes about a byte more for each
// element than the list does here, where long elements are parts of their own.
func encoding(t engine.Txn, item engine.Item) string {
	parts, big := t.Parts(item)
	if !big {
		return "listpack"
	}
	tree := shape.ListOf(parts, nil)
	size := tree.Bytes() + tree.Len()
	if size < listpackBytes {
		tree.Walk(0, func(x shape.Entry) bool {
			if n := x.First.Size(); n > shape.MaxInLeaf {
				size += n
			}
			return size < listpackBytes
		})
	}
	if size < listpackBytes {
		return "listpack"
	}
	return "quicklist"
}
