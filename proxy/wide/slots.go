package wide

import (
	"errors"
	"math"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// askSlots asks the owners of the slots about their keys. The keys of one slot are at one node.
func askSlots(c *Call, q *Question) error {
	query, refusal := cluster.ParseSlotQuery(c.Command, c.Args)
	if refusal != "" {
		return errors.New(refusal)
	}
	q.Rounds.First, q.Rounds.End = int(ring.Partition(query.First)), int(ring.Partition(query.Last))+1
	q.OfDatabase = c.Command.ID != command.ClusterSlotStats
	switch c.Command.ID {
	case command.ClusterCountKeysInSlot:
		q.merge = &sum{}
	case command.ClusterGetKeysInSlot:
		q.merge = &keys{}
	default:
		q.merge = &slotStats{query: query, version: c.Version}
	}
	return nil
}

// slotStats puts the nodes' figures in order: CLUSTER SLOT-STATS.
type slotStats struct {
	query   cluster.SlotQuery
	version resp.Version
	all     []cluster.SlotKeys
}

// Begin keeps what there is: a further round asks about other partitions.
func (m *slotStats) Begin() {}

// Add takes a node's figures, pairs of slot and number of keys.
func (m *slotStats) Add(a Answer) error {
	n, header, ok := resp.DecodeArray(a.Reply)
	if !ok || n < 0 || n%2 != 0 || n > 2*ring.Slots {
		return errMerge
	}
	numbers, rest := make([]int64, 0, n), a.Reply[header:]
	var scan resp.Scanner
	for range n {
		if scan.Scan(rest) != resp.Done {
			return errMerge
		}
		number, ok := resp.DecodeInt(rest[:scan.Len()])
		if !ok || number < 0 || number > math.MaxInt64/2 {
			return errMerge
		}
		numbers, rest = append(numbers, number), rest[scan.Len():]
	}
	for i := 0; i < n; i += 2 {
		if numbers[i] >= ring.Slots {
			return errMerge
		}
		m.all = append(m.all, cluster.SlotKeys{Slot: uint16(numbers[i]), Keys: numbers[i+1]})
	}
	return nil
}

// Reply appends the figures.
func (m *slotStats) Reply(dst []byte) []byte {
	return cluster.AppendSlotStats(dst, m.version, m.query.Arrange(m.all))
}
