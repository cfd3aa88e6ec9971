package office

import (
	"errors"

	"github.com/dunlin-cache/dunlin/ring"
)

// A node that has not run for a while must not trust its own table: the others may have replaced it
// meanwhile, and any single other node may have slept as long. So it asks all of them.

var (
	errNobody   = errors.New("no other node has told its table")
	errMinority = errors.New("too few nodes are alive")
	// ErrForeign is returned while the coordinator, perhaps this member, has a split to heal.
	ErrForeign = errors.New("another node holds a table of a foreign lineage")
)

// Witnesses returns the nodes to be asked for their tables: those that are alive or in the table.
// One that does not answer is waited for as long as it takes to declare it dead.
func (c *Config) Witnesses(host Host) []ring.Member {
	nodes := c.otherNodes(host.Alive())
	if t := host.Table(); t != nil {
		nodes = append(nodes, c.otherNodes(t.Nodes)...)
	}
	return nodes
}

// Confirm adopts what the witnesses have answered with, and returns the table that is the current
// one by them. An error means that they have to be asked again.
func (c *Config) Confirm(host Host, tables []*ring.Table) (*ring.Table, error) {
	if need := c.Outdated(host.Alive()); need > 0 {
		return nil, &ring.LevelError{Need: uint64(need)}
	}
	few := len(tables)+1 < c.MinMembers && !c.Broken.CountSilent // though not all of them are declared dead yet
	switch {
	case Minority(host.Alive(), c.MinMembers), len(tables) > 0 && few:
		return nil, errMinority
	case len(tables) == 0:
		return nil, errNobody
	}
	for _, t := range newestFirst(tables) {
		host.Adopt(t, nil)
	}
	current := host.Table()
	for _, t := range tables {
		if current.Version() != t.Version() && !current.Descends(t.Version()) {
			return nil, ErrForeign
		}
	}
	return current, nil
}

// Alone reports whether there is nobody to ask, though as few as this member are enough.
func (c *Config) Alone(host Host) bool {
	alive := host.Alive()
	return !Minority(alive, c.MinMembers) && len(c.otherNodes(alive)) == 0 && c.Outdated(alive) == 0
}
