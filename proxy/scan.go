package proxy

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A SCAN cursor is partition<<cursorBits | position, where the position orders a partition's keys by their hash. The hash
// seed is the cluster's, so a cursor holds on any node and after a move; it stays below 2^53 for clients that keep it in a
// floating-point number.
const cursorBits = 40

var errCursor = wire("ERR invalid cursor")

// parseCursor reads a cursor. One beyond all partitions is at the end of them.
func parseCursor(b []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(b), 10, 64)
	return min(n, ring.Partitions<<cursorBits), err == nil
}

// scanRound merges the nodes' answers to one SCAN. Every node looks from the cursor on, in ascending order, and says where
// it stopped. What lies beyond the earliest stop is left for the next call:
//
//	partitions  0 1 2 3 4 5 6 7 8 …
//	n1          ■ · ■ · ■ stop            n1 owns 0 2 4 6 …, stopped within 4
//	n2          · ■ · ■ · ■ · ■ stop      n2 owns 1 3 5 7 …, stopped within 8
//	reply       ■ ■ ■ ■ ■                 next cursor: n1's stop; n2's keys of 5 and 7 are dropped
type scanRound struct {
	cursor  uint64
	answers []scanAnswer
	covered partitionSet

	next  uint64 // of the reply; 0: the iteration is over
	keys  []byte // encoded
	count int
}

type scanAnswer struct {
	stop int64  // cursor, or -1: all its partitions were walked
	keys []byte // encoded elements, owned
}

// begin forgets an earlier round.
func (r *scanRound) begin() {
	r.answers, r.covered = nil, partitionSet{}
	r.keys, r.count = nil, 0
}

// add takes one node's answer, "*2 :stop keys".
func (r *scanRound) add(covered *partitionSet, reply []byte) bool {
	n, header, ok := resp.DecodeArray(reply)
	if !ok || n != 2 {
		return false
	}
	var scan resp.Scanner
	if scan.Scan(reply[header:]) != resp.Done {
		return false
	}
	stop, ok := resp.DecodeInt(reply[header : header+scan.Len()])
	if !ok {
		return false
	}
	rest := reply[header+scan.Len():]
	_, header, ok = resp.DecodeArray(rest)
	if !ok {
		return false
	}
	for i := range r.covered {
		r.covered[i] |= covered[i]
	}
	r.answers = append(r.answers, scanAnswer{stop, append([]byte(nil), rest[header:]...)})
	return true
}

// conclude finds the earliest stop and keeps the keys before it. False: not even the first partition was covered.
func (r *scanRound) conclude(want *partitionSet) bool {
	stop := int64(ring.Partitions << cursorBits)
	for _, a := range r.answers {
		if a.stop >= 0 {
			stop = min(stop, a.stop)
		}
	}
	inclusive := true // keys of the partition that holds the stop were walked up to it
	for p := int(r.cursor >> cursorBits); p < ring.Partitions && int64(p)<<cursorBits <= stop; p++ {
		if want.has(p) && !r.covered.has(p) {
			if p == int(r.cursor>>cursorBits) {
				return false
			}
			stop, inclusive = int64(p)<<cursorBits, false
			break
		}
	}
	r.collect(int(stop>>cursorBits), inclusive)
	r.next = uint64(stop)
	if stop == ring.Partitions<<cursorBits {
		r.next = 0
	}
	return true
}

// collect keeps the keys of the partitions before last, and of last if inclusive.
func (r *scanRound) collect(last int, inclusive bool) {
	for _, a := range r.answers {
		var scan resp.Scanner
		for rest := a.keys; len(rest) > 0 && scan.Scan(rest) == resp.Done; rest = rest[scan.Len():] {
			element := rest[:scan.Len()]
			key, _ := resp.DecodeBulk(element)
			if p := int(ring.PartitionOf(key)); p < last || p == last && inclusive {
				r.keys = append(r.keys, element...)
				r.count++
			}
		}
	}
}
