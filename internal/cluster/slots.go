package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// What commands ask about the keys of slots. The nodes count and list them.

// ErrSlotRange refuses an argument that is no slot.
const ErrSlotRange = "ERR Invalid or out of range slot"

const (
	errInvalidSlot = "ERR Invalid slot"
	errSlotOrKeys  = "ERR Invalid slot or number of keys"
	errMetric      = "ERR Unrecognized sort metric for ORDERBY."
	errRepeated    = "ERR Multiple filters of the same type are disallowed."
	errLimit       = "ERR Limit has to lie in between 1 and 16384 (maximum number of slots)."
)

// SlotQuery is what one of these commands asks for.
type SlotQuery struct {
	First, Last uint16 // the slots
	Most        int    // how many keys (GETKEYSINSLOT) or slots (SLOT-STATS) are shown
	ByKeys      bool   // SLOT-STATS: in the order of how many keys the slots have
	Ascending   bool
}

// SlotKeys is how many keys a slot has.
type SlotKeys struct {
	Slot uint16
	Keys int64
}

// ParseSlotQuery reads the arguments of CLUSTER COUNTKEYSINSLOT, GETKEYSINSLOT or SLOT-STATS. refusal is
// the text of an error, or "".
func ParseSlotQuery(c *command.Command, args [][]byte) (q SlotQuery, refusal string) {
	switch c.ID {
	case command.ClusterSlotStats:
		return parseSlotStats(args)
	case command.ClusterGetKeysInSlot:
		slot, ok := resp.ParseInt(args[2])
		most, isInt := resp.ParseInt(args[3])
		switch {
		case !ok || !isInt:
			return q, command.ErrNotInteger
		case slot < 0 || slot >= ring.Slots || most < 0:
			return q, errSlotOrKeys
		}
		return SlotQuery{First: uint16(slot), Last: uint16(slot), Most: int(most)}, ""
	}
	slot, ok := resp.ParseInt(args[2])
	switch {
	case !ok:
		return q, command.ErrNotInteger
	case slot < 0 || slot >= ring.Slots:
		return q, errInvalidSlot
	}
	return SlotQuery{First: uint16(slot), Last: uint16(slot)}, ""
}

// parseSlotStats reads CLUSTER SLOT-STATS SLOTSRANGE first last, and ORDERBY KEY-COUNT [LIMIT n]
// [ASC | DESC].
func parseSlotStats(args [][]byte) (q SlotQuery, refusal string) {
	q = SlotQuery{Last: ring.Slots - 1, Most: ring.Slots}
	switch {
	case command.EqualFold(args[2], "slotsrange") && len(args) == 5:
		var bounds [2]int64
		for i := range bounds {
			n, ok := resp.ParseInt(args[3+i])
			if !ok || n < 0 || n >= ring.Slots {
				return q, ErrSlotRange
			}
			bounds[i] = n
		}
		if bounds[0] > bounds[1] {
			return q, fmt.Sprintf("ERR Start slot number %d is greater than end slot number %d", bounds[0], bounds[1])
		}
		q.First, q.Last = uint16(bounds[0]), uint16(bounds[1])
		return q, ""
	case !command.EqualFold(args[2], "orderby"):
		return q, command.WrongSubArgs(args)
	case !command.EqualFold(args[3], "key-count"): // the only figure that is kept for a slot
		return q, errMetric
	}
	q.ByKeys = true
	limits, orders := 0, 0
	for i := 4; i < len(args); i++ {
		switch {
		case command.EqualFold(args[i], "limit") && i+1 < len(args):
			i++
			n, ok := resp.ParseInt(args[i])
			if !ok || n < 1 || n > ring.Slots {
				return q, errLimit
			}
			q.Most = int(n)
			limits++
		case command.EqualFold(args[i], "asc"), command.EqualFold(args[i], "desc"):
			q.Ascending = command.EqualFold(args[i], "asc")
			orders++
		default:
			return q, command.ErrSyntax
		}
		if limits > 1 || orders > 1 {
			return q, errRepeated
		}
	}
	return q, ""
}

// Arrange sorts the figures as CLUSTER SLOT-STATS shows them, and returns as many as it shows.
func (q *SlotQuery) Arrange(all []SlotKeys) []SlotKeys {
	slices.SortFunc(all, func(a, b SlotKeys) int {
		byKeys := 0
		if q.ByKeys {
			if byKeys = cmp.Compare(b.Keys, a.Keys); q.Ascending {
				byKeys = -byKeys
			}
		}
		return cmp.Or(byKeys, cmp.Compare(a.Slot, b.Slot))
	})
	return all[:min(q.Most, len(all))]
}

// AppendSlotStats appends the reply to CLUSTER SLOT-STATS.
func AppendSlotStats(dst []byte, v resp.Version, all []SlotKeys) []byte {
	return AppendSlotFigures(resp.AppendArray(dst, len(all)), v, all)
}

// AppendSlotFigures appends elements of the reply to CLUSTER SLOT-STATS.
func AppendSlotFigures(dst []byte, v resp.Version, all []SlotKeys) []byte {
	for _, s := range all {
		dst = resp.AppendArray(dst, 2)
		dst = resp.AppendInt(dst, int64(s.Slot))
		dst = resp.AppendMap(dst, v, 1)
		dst = resp.AppendBulkString(dst, "key-count")
		dst = resp.AppendInt(dst, s.Keys)
	}
	return dst
}
