package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// PinnedStats are about a pinned database that the node serves.
type PinnedStats struct {
	Database  uint8
	Partition uint16
	Keys      int64
	Bytes     int64   // that its keys take with their values, by the last walk over all keys
	Share     float64 // of this node's commands on keys in about the last minute, by samples: 0 to 1
	// Crowds: it takes more than half of the node's memory limit, or of its commands while these are many.
	Crowds bool
}

// pinnedStats returns those of all pinned databases that the node serves. The uses are sampled, and ops
// are the node's commands a second.
func (n *Node) pinnedStats(v *ownership.View, uses *measure.Uses, ops float64) (all []PinnedStats) {
	placement := n.placing.Load().Placement
	for d := range uint8(ring.MaxDatabases) {
		p := ring.PinnedPartition(d)
		if !placement.Pins(d) || v.Standing[p] != ownership.Serving {
			continue
		}
		s := PinnedStats{
			Database: d, Partition: p, Keys: int64(n.engine.CountSection(engine.Section(p, d))),
			Bytes: n.big.Bytes(d), Share: uses.Share(d),
		}
		s.Crowds = s.Bytes > n.engine.MaxBytes()/2 || s.Share > 0.5 && ops >= manyOps
		all = append(all, s)
	}
	return all
}

// manyOps is how many commands a second a node executes before it matters that most of them are about one database.
const manyOps = 1000

// pinnedPeriod is how often it is looked whether a pinned database crowds the node.
const pinnedPeriod = 10 * time.Second

// watchPinned logs it once when a pinned database begins to crowd the node.
func (n *Node) watchPinned() {
	var crowding ring.Databases
	for n.pause(pinnedPeriod); n.ctx.Err() == nil; n.pause(pinnedPeriod) {
		if n.placing.Load().Pinned() == 0 {
			crowding = 0
			continue
		}
		s, err := n.Stats()
		if err != nil {
			continue
		}
		var now ring.Databases
		for i := range s.Pinned {
			d := &s.Pinned[i]
			if !d.Crowds {
				continue
			}
			if now = now.With(d.Database); !crowding.Has(d.Database) {
				n.log.Warn("a pinned database takes more than half of this node", "database", d.Database,
					"bytes", d.Bytes, "share of commands", d.Share)
			}
		}
		crowding = now
	}
}
