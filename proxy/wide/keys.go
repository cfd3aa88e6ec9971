package wide

import (
	"errors"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// maxKeys bounds the reply to KEYS in bytes, because it is gathered in memory.
const maxKeys = 256 << 20

var errKeysMany = errors.New("ERR the reply would be too large, use SCAN")

// keys puts the nodes' keys one after the other.
type keys struct {
	elements []byte // encoded
	count    int
}

func askKeys(_ *Call, q *Question) error {
	q.merge, q.OfDatabase = &keys{}, true
	return nil
}

// Begin keeps the keys so far: a further round asks about other partitions.
func (m *keys) Begin() {}

// Add takes a node's keys.
func (m *keys) Add(a Answer) error {
	n, header, ok := resp.DecodeArray(a.Reply)
	if len(m.elements)+len(a.Reply) > maxKeys {
		return errKeysMany
	}
	m.elements = append(m.elements, a.Reply[header:]...)
	m.count += max(n, 0)
	return malformedUnless(ok)
}

// Size is the bytes of the keys.
func (m *keys) Size() int { return cap(m.elements) }

// Reply appends the keys.
func (m *keys) Reply(dst []byte) []byte { return append(resp.AppendArray(dst, m.count), m.elements...) }
