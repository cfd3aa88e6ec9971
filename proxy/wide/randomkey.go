package wide

import (
	"math"
	"math/rand/v2"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// randomKey chooses among the keys that the nodes have chosen. The more keys a node has, the more
// probably its key is the answer.
type randomKey struct {
	call   *Call
	among  int64  // keys of the nodes so far
	chosen []byte // the key, as a bulk; nil: none yet
}

func askRandomKey(c *Call, q *Question) error {
	q.merge, q.OfDatabase = &randomKey{call: c}, true
	return nil
}

// Begin keeps what there is: a further round asks about other partitions.
func (m *randomKey) Begin() {}

// Add takes a node's answer: among how many keys it has chosen, and which; or nothing, if it has
// none.
func (m *randomKey) Add(a Answer) error {
	n, header, ok := resp.DecodeArray(a.Reply)
	if !ok || n != 0 && n != 2 {
		return errMerge
	}
	if n == 0 {
		return nil
	}
	var scan resp.Scanner
	if scan.Scan(a.Reply[header:]) != resp.Done {
		return errMerge
	}
	count, ok := resp.DecodeInt(a.Reply[header : header+scan.Len()])
	if !ok || count <= 0 || count > math.MaxInt64-m.among {
		return errMerge
	}
	if m.among += count; rand.Int64N(m.among) < count {
		m.chosen = append(m.chosen[:0], a.Reply[header+scan.Len():]...)
	}
	return nil
}

// Reply appends the key, or null if there is none.
func (m *randomKey) Reply(dst []byte) []byte {
	if m.chosen == nil {
		return resp.AppendNull(dst, m.call.Version)
	}
	return append(dst, m.chosen...)
}
