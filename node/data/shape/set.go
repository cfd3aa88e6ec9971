package shape

import "github.com/dunlin-cache/dunlin/node/engine"

// The planes of a set with parts. They are known here because commands on sorted sets read sets
// too.
const (
	SetBlocks = iota
	setAway
)

// SetTable is the table of a set with parts.
func SetTable(v engine.Parts) Table {
	return Table{V: v, Blocks: SetBlocks, Away: setAway, Items: 1}
}
