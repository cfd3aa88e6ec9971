package figures

import (
	"cmp"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// SlowLogs merges the replies of several nodes to SLOWLOG GET. The zero value is empty.
type SlowLogs struct {
	entries []mergedEntry
}

type mergedEntry struct {
	id   int64
	node string
	text []byte // encoded
}

// Add adds a node's reply, which it does not keep; it returns false if the reply is malformed.
// Entries of clients without a name, such as a proxy's pipes, get the node's name instead.
func (m *SlowLogs) Add(reply []byte, node string) bool {
	n, at, ok := resp.DecodeArray(reply)
	if !ok {
		return false
	}
	var scan resp.Scanner
	for range n {
		if scan.Scan(reply[at:]) != resp.Done || !m.add(reply[at:at+scan.Len()], node) {
			return false
		}
		at += scan.Len()
	}
	return true
}

func (m *SlowLogs) add(entry []byte, node string) bool {
	n, at, ok := resp.DecodeArray(entry)
	if !ok || n != slowFields {
		return false
	}
	var id int64
	var scan resp.Scanner
	for i := range n {
		if scan.Scan(entry[at:]) != resp.Done {
			return false
		}
		field := entry[at : at+scan.Len()]
		if i == 0 {
			if id, ok = resp.DecodeInt(field); !ok {
				return false
			}
		}
		if name, _ := resp.DecodeBulk(field); i == n-1 && len(name) == 0 {
			entry = resp.AppendBulkString(entry[:at:at], node)
		}
		at += scan.Len()
	}
	m.entries = append(m.entries, mergedEntry{id, node, slices.Clone(entry)})
	return true
}

// Append encodes the latest entries of all nodes. count is the result of SlowLogCount.
func (m *SlowLogs) Append(dst []byte, count int) []byte {
	slices.SortStableFunc(m.entries, func(a, b mergedEntry) int {
		return cmp.Or(cmp.Compare(b.id, a.id), cmp.Compare(a.node, b.node))
	})
	if count >= 0 && count < len(m.entries) {
		m.entries = m.entries[:count]
	}
	dst = resp.AppendArray(dst, len(m.entries))
	for _, e := range m.entries {
		dst = append(dst, e.text...)
	}
	return dst
}
