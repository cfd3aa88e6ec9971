package wide

import (
	"bytes"
	"errors"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

var errCursor = errors.New("ERR invalid cursor")

// scan merges the nodes' answers to one SCAN. Every node looks from the cursor on, in ascending
// order, and says where it stopped. What lies beyond the earliest stop is left for the next call:
//
//	partitions  0 1 2 3 4 5 6 7 8 …
//	n1          ■ · ■ · ■ stop            n1 owns 0 2 4 6 …, stopped within 4
//	n2          · ■ · ■ · ■ · ■ stop      n2 owns 1 3 5 7 …, stopped within 8
//	reply       ■ ■ ■ ■ ■                 next cursor: n1's stop; n2's keys of 5 and 7 are dropped
type scan struct {
	cursor  member.Cursor
	of      func(key []byte) uint16 // Call.PartitionOf
	answers []scanAnswer
	covered ring.PartitionSet

	next  member.Cursor // of the reply; 0: the iteration is over
	keys  []byte        // encoded
	count int
}

type scanAnswer struct {
	stop member.Cursor // EndOfScan: all its partitions were walked
	keys []byte        // encoded elements, owned
}

func askScan(c *Call, q *Question) error {
	cursor, ok := member.ParseCursor(c.Args[1])
	if !ok {
		return errCursor
	}
	q.Rounds.First, q.Rounds.Anew = cursor.Partition(), true
	q.merge, q.OfDatabase = &scan{cursor: cursor, of: c.PartitionOf}, true
	return nil
}

// Begin forgets an earlier round.
func (r *scan) Begin() {
	r.answers, r.covered = nil, ring.PartitionSet{}
	r.keys, r.count = nil, 0
}

// Add takes one node's answer.
func (r *scan) Add(a Answer) error {
	stop, keys, ok := member.ParseStop(a.Reply)
	if !ok {
		return errMerge
	}
	r.covered.AddAll(a.Covered)
	r.answers = append(r.answers, scanAnswer{stop, bytes.Clone(keys)})
	return nil
}

// Finished finds the earliest stop and keeps the keys before it. It reports false if not even the
// first partition was covered.
func (r *scan) Finished(*ring.PartitionSet) bool {
	stop := member.EndOfScan
	for _, a := range r.answers {
		stop = min(stop, a.stop)
	}
	inclusive := true // keys of the partition that holds the stop were walked up to it
	first := r.cursor.Partition()
	for p := first; p < ring.Partitions && member.CursorAt(p, 0) <= stop; p++ {
		if !r.covered.Has(uint16(p)) {
			if p == first {
				return false
			}
			stop, inclusive = member.CursorAt(p, 0), false
			break
		}
	}
	r.collect(stop.Partition(), inclusive)
	r.next = stop
	if stop == member.EndOfScan {
		r.next = 0
	}
	return true
}

// collect keeps the keys of the partitions before last, and of last if inclusive.
func (r *scan) collect(last int, inclusive bool) {
	for _, a := range r.answers {
		var elements resp.Scanner
		for rest := a.keys; len(rest) > 0 && elements.Scan(rest) == resp.Done; rest = rest[elements.Len():] {
			element := rest[:elements.Len()]
			key, _ := resp.DecodeBulk(element)
			if p := int(r.of(key)); p < last || p == last && inclusive {
				r.keys = append(r.keys, element...)
				r.count++
			}
		}
	}
}

// Reply appends the next cursor and the keys.
func (r *scan) Reply(dst []byte) []byte {
	dst = resp.AppendArray(dst, 2)
	dst = resp.AppendBulk(dst, r.next.Append(nil))
	return append(resp.AppendArray(dst, r.count), r.keys...)
}
