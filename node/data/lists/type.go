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

// encoding returns what Redis would call such a value. A listpack takes about a byte more for each
// element than the list does here, where long elements are parts of their own.
func encoding(t engine.Txn, item engine.Item, limits exec.Encodings) string {
	fits := false
	if parts, big := t.Parts(item); big {
		tree := shape.ListOf(parts, nil)
		size, looked := tree.Bytes()+tree.Len(), 0
		fits = limits.ListFits(tree.Len(), size)
		tree.Walk(0, func(x shape.Entry) bool {
			if n := x.First.Size(); n > shape.MaxInLeaf {
				size += n
				fits = limits.ListFits(tree.Len(), size)
			}
			looked++
			return fits && looked < exec.EncodingLook
		})
	} else {
		p := shape.ReadPacked(&shape.PackedList, item.Value())
		fits = limits.ListFits(p.Len(), len(item.Value())+p.Len())
	}
	if fits {
		return "listpack"
	}
	return "quicklist"
}
