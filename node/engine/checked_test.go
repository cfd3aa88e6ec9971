//go:build checked

package engine

import (
	"bytes"
	"strings"
	"testing"
)

// What is freed is overwritten, and a handle that nobody has is caught.
func TestChecks(t *testing.T) {
	e := open(t, Config{MaxBytes: 8 << 20, Shards: 1})
	mustSet(t, e, 1, "stays", make([]byte, 40))
	mustSet(t, e, 1, "goes", bytes.Repeat([]byte{1}, 40))
	s := e.shardOf(1)
	x := e.Lock(1, 1)
	defer x.Unlock()
	item, _ := x.Peek([]byte("goes"))
	stale := item.Value()
	x.Delete([]byte("goes"))
	if got := stale[30]; got != poison {
		t.Errorf("a freed value reads %#x, want %#x", got, poison)
	}
	caught := func(h handle) (text string) {
		defer func() { text, _ = recover().(string) }()
		s.cells.word(h)
		return ""
	}
	for _, h := range []handle{1, s.cells.firstCell(uint32(e.pool.inUse())) + 1, s.cells.firstCell(100)} {
		if got := caught(h); !strings.HasPrefix(got, "BUG: handle") {
			t.Errorf("handle %#x: %q", h, got)
		}
	}
}
