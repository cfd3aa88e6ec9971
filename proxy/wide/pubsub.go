package wide

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// PUBSUB. Each channel is known to the owner of its slot, so CHANNELS puts the nodes' lists one after the
// other. Patterns are known to all nodes.

func askChannels(_ *Call, q *Question) error {
	q.merge = &keys{}
	return nil
}

// numSub adds what the nodes say about each channel: all but its owner say 0.
type numSub struct {
	names  [][]byte
	counts []int64
}

func askNumSub(c *Call, q *Question) error {
	q.merge = &numSub{names: c.Args[2:], counts: make([]int64, len(c.Args)-2)}
	return nil
}

// Begin keeps the counts so far: a further round asks about other partitions.
func (m *numSub) Begin() {}

// Add takes a node's names and counts.
func (m *numSub) Add(a Answer) error {
	n, header, ok := resp.DecodeArray(a.Reply)
	if !ok || n != 2*len(m.names) {
		return errMerge
	}
	rest := a.Reply[header:]
	var scan resp.Scanner
	for i := range n {
		if scan.Scan(rest) != resp.Done {
			return errMerge
		}
		if i%2 == 1 {
			count, ok := resp.DecodeInt(rest[:scan.Len()])
			if !ok {
				return errMerge
			}
			m.counts[i/2] += count
		}
		rest = rest[scan.Len():]
	}
	return nil
}

// Reply appends the channels with their counts.
func (m *numSub) Reply(dst []byte) []byte {
	dst = resp.AppendArray(dst, 2*len(m.names))
	for i, name := range m.names {
		dst = resp.AppendInt(resp.AppendBulk(dst, name), m.counts[i])
	}
	return dst
}

// numPat is the greatest number that a node says: one that has joined a moment ago may not know all.
type numPat struct{ most int64 }

func askNumPat(_ *Call, q *Question) error {
	q.merge = &numPat{}
	return nil
}

// Begin keeps the number so far.
func (m *numPat) Begin() {}

// Add takes a node's number.
func (m *numPat) Add(a Answer) error {
	n, ok := resp.DecodeInt(a.Reply)
	m.most = max(m.most, n)
	return malformedUnless(ok)
}

// Reply appends the number.
func (m *numPat) Reply(dst []byte) []byte { return resp.AppendInt(dst, m.most) }
