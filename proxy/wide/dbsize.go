package wide

import "github.com/dunlin-cache/dunlin/internal/resp"

// sum adds the nodes' numbers: DBSIZE, and part of SLOWLOG LEN.
type sum struct {
	total int64
	anew  bool // they are not about partitions: each round adds from the beginning
}

func askDBSize(_ *Call, q *Question) error {
	q.merge, q.OfDatabase = &sum{}, true
	return nil
}

// Begin forgets numbers that are not about partitions.
func (m *sum) Begin() {
	if m.anew {
		m.total = 0
	}
}

// Add takes a node's number.
func (m *sum) Add(a Answer) error {
	n, ok := resp.DecodeInt(a.Reply)
	m.total += n
	return malformedUnless(ok)
}

// Reply appends the sum.
func (m *sum) Reply(dst []byte) []byte { return resp.AppendInt(dst, m.total) }
