package measure

import (
	"context"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// Big keys are found by a walk over all keys that never ends: a few at a time under a
// shard's lock, and at most bigTurn every bigPause.

const (
	bigStep = 64 // keys under one lock
	// bigPause follows each turn, which looks at up to bigTurn keys: 50,000 keys a second at most.
	bigPause = 20 * time.Millisecond
	bigTurn  = 1000
	// bigRound is how long a walk takes at least.
	bigRound = 10 * time.Second
	// bigEmpty is how many partitions without keys make a turn.
	bigEmpty = ring.Partitions * int(bigPause) / int(bigRound)
)

// BigWalk knows the largest keys of the last walk, and of the one under way.
type BigWalk struct {
	mu   sync.Mutex
	last figures.KeyFigures
	now  figures.KeyFigures
}

// meet takes an item. Its size is that of key and value.
func (b *BigWalk) meet(item engine.Item) bool {
	size := int64(len(item.Key()) + len(item.Value()))
	if b.now.Enters(size) {
		b.now.Keep(string(item.Key()[:min(len(item.Key()), HotKeyBytes)]), size)
	}
	return true
}

// Turn ends a walk.
func (b *BigWalk) Turn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.now = b.now, figures.KeyFigures{}
}

// Top returns the largest keys as of the last walk, and as far as the next one has come. The
// largest come first.
func (b *BigWalk) Top() []figures.KeyFigure {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all figures.KeyFigures
	for _, k := range b.last.Top() {
		all.Keep(k.Key, k.N)
	}
	for _, k := range b.now.Top() {
		all.Keep(k.Key, k.N)
	}
	return all.Top()
}

// Run walks over the keys of e until ctx ends. now returns the time in unix milliseconds.
func (b *BigWalk) Run(ctx context.Context, e *engine.Engine, now func() int64) {
	pause := time.NewTicker(bigPause)
	defer pause.Stop()
	looked := 0 // keys and empty partitions in this turn
	for p := uint16(0); ; p = (p + 1) % ring.Partitions {
		for cursor, done := uint64(0), false; !done; {
			before := looked
			cursor, done = b.Look(e, p, cursor, now(), &looked)
			if looked == before || done {
				looked += bigTurn / bigEmpty
			}
			if looked < bigTurn {
				continue
			}
			looked = 0
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
		}
		if p == ring.Partitions-1 {
			b.Turn()
		}
	}
}

// Look takes some items of a partition.
func (b *BigWalk) Look(e *engine.Engine, p uint16, cursor uint64, now int64, looked *int) (next uint64, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.Walk(p, cursor, bigStep, now, func(item engine.Item) bool {
		*looked++
		return b.meet(item)
	})
}
