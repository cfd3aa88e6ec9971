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
// element than the list does here.
func encoding(_ engine.Txn, item engine.Item) string {
	if !item.HasParts() {
		return "listpack"
	}
	n, bytes := shape.ListSize(item)
	if bytes > shape.MaxPackedList/2 && bytes+n < listpackBytes {
		return "listpack"
	}
	return "quicklist" // of few bytes, too: it has elements that are parts of their own
}
