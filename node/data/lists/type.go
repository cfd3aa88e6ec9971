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
	Restores:    func(byte) bool { return false },
	MaxEffect:   shape.MaxPackedList + 64,
	CheckRecord: func(value []byte) error { return shape.CheckPacked(&shape.PackedList, value) },
	Form:        shape.ListForm,
	Level:       ring.CollectionsLevel,
}

// encoding returns what Redis would call such a value: a list of up to 8 KiB is a listpack.
func encoding(item engine.Item) string {
	if item.HasParts() {
		return "quicklist"
	}
	return "listpack"
}
