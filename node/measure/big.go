package measure

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// Big keys are found by walks over all keys, one after the other while something changes. A walk
// looks at bigStep keys under one hold of a shard's lock, and at up to bigTurn keys every bigPause.

const (
	bigStep = 64 // keys under one lock
	// bigPause follows each turn, which looks at up to bigTurn keys: 50,000 keys a second at most.
	bigPause = 20 * time.Millisecond
	bigTurn  = 1000
	// bigRound is the shortest time that a walk takes.
	bigRound = 10 * time.Second
	// bigEmpty is how many empty partitions make a turn.
	bigEmpty = ring.Partitions * int(bigPause) / int(bigRound)
	// bigRest is how often Run checks whether anything has changed since the last walk began.
	bigRest = 2 * time.Second
)

// BigWalk knows the largest keys that the last walk found, and those of the walk under way. It may
// be used by several goroutines.
type BigWalk struct {
	mu   sync.Mutex
	last figures.KeyFigures
	now  figures.KeyFigures

	bytesLast, bytesNow [engine.Databases]int64 // of memory that the keys take which were met, by database
}

// meet notes an item, with the length of its key and value, or the memory of a collection's parts.
func (b *BigWalk) meet(e *engine.Engine, database uint8, item engine.Item) bool {
	size := int64(len(item.Key())+len(item.Value())) + e.PartsBytes(item)
	b.bytesNow[database] += e.ItemBytes(item)
	if b.now.Enters(size) {
		key := string(item.Key()[:min(len(item.Key()), HotKeyBytes)])
		b.now.Keep(figures.KeyFigure{Key: key, Database: database, N: size})
	}
	return true
}

// Turn ends a walk and begins the next.
func (b *BigWalk) Turn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.now = b.now, figures.KeyFigures{}
	b.bytesLast, b.bytesNow = b.bytesNow, [engine.Databases]int64{}
}

// Bytes returns how much memory the keys of a database take with their values, copies too: by the last walk, or by the
// one under way if that has found more already.
func (b *BigWalk) Bytes(database uint8) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.bytesLast[database], b.bytesNow[database])
}

// Top returns the largest keys of the last walk and of the one under way, the largest first.
func (b *BigWalk) Top() []figures.KeyFigure {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all figures.KeyFigures
	for _, k := range slices.Concat(b.last.Top(), b.now.Top()) {
		all.Keep(k)
	}
	return all.Top()
}

// Run walks over the keys of e until ctx ends. now returns the time in unix milliseconds.
func (b *BigWalk) Run(ctx context.Context, e *engine.Engine, now func() int64) {
	for walked := int64(0); ; b.Turn() { // what was recorded when the last walk began; 0: the engine is empty
		for e.Stats().Recorded == walked {
			select {
			case <-ctx.Done():
				return
			case <-time.After(bigRest):
			}
		}
		walked = e.Stats().Recorded
		if !b.walk(ctx, e, now) {
			return
		}
	}
}

// walk walks over all keys once. It returns false if ctx has ended.
func (b *BigWalk) walk(ctx context.Context, e *engine.Engine, now func() int64) bool {
	turn := time.NewTicker(bigPause)
	defer turn.Stop()
	looked := 0 // keys and empty partitions in this turn
	for p := range uint16(ring.Partitions) {
		for database := range uint8(engine.Databases) {
			section := engine.Section(p, database)
			if database > 0 && e.CountSection(section) == 0 {
				continue
			}
			for cursor, done := uint64(0), false; !done; {
				before := looked
				cursor, done = b.Look(e, section, cursor, now(), &looked)
				if looked == before || done {
					looked += bigTurn / bigEmpty
				}
				if !pause(ctx, turn, &looked) {
					return false
				}
			}
		}
	}
	return true
}

// pause ends the turn if it has looked at enough. It returns false if ctx has ended meanwhile.
func pause(ctx context.Context, turn *time.Ticker, looked *int) bool {
	if *looked < bigTurn {
		return true
	}
	*looked = 0
	select {
	case <-ctx.Done():
		return false
	case <-turn.C:
		return true
	}
}

// Look visits up to bigStep items of a section from cursor on, and adds their number to looked.
// It returns the cursor to continue at; done is true at the section's end.
func (b *BigWalk) Look(e *engine.Engine, section uint16, cursor uint64, now int64, looked *int) (next uint64, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.Walk(section, cursor, bigStep, now, func(item engine.Item) bool {
		*looked++
		return b.meet(e, engine.DatabaseOf(section), item)
	})
}
