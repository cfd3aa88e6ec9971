package wide

import "github.com/dunlin-cache/dunlin/internal/figures"

// HOTKEYS GET, BIG and RESET.

// hotKeys takes the keys with the largest figures.
type hotKeys struct {
	call *Call
	keys figures.KeyFigures
	by   string // the figure
}

func askHotKeysGet(c *Call, q *Question) error { return askHotKeys(c, q, figures.UsesASecond) }

func askHotKeysBig(c *Call, q *Question) error { return askHotKeys(c, q, figures.BytesOfKey) }

func askHotKeys(c *Call, q *Question, by string) error {
	q.AboutNodes, q.merge = true, &hotKeys{call: c, by: by}
	return nil
}

func askHotKeysReset(_ *Call, q *Question) error { return askOK(q) }

// Begin forgets the keys: nodes are all asked again.
func (m *hotKeys) Begin() { m.keys = figures.KeyFigures{} }

// Add takes a node's keys.
func (m *hotKeys) Add(a Answer) error { return malformedUnless(m.keys.Decode(a.Reply)) }

// Reply appends the keys, the largest figure first.
func (m *hotKeys) Reply(dst []byte) []byte {
	return figures.AppendKeyFigures(dst, m.call.Version, m.by, m.keys.Top())
}
