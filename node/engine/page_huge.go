package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// Huge pages of the system save most misses of the TLB: a lookup in a million keys takes a sixth
// less time. But a huge page that comes with the first touch, or that the system makes of its own
// accord, is resident before it is charged, and the first touch can delay a command. So memory
// comes in small pages. A block, the pages that make one huge page, becomes huge in the background
// when all of it has been charged. When one of its pages is given back the block is small again.
type blocks struct {
	mu       sync.Mutex // held while a block becomes huge or small; pool.mu is locked under it
	all      []block
	pages    uint32 // in a block
	strained func() bool
	running  atomic.Bool
	closed   atomic.Bool
	ended    sync.WaitGroup
}

// block counts the pages that keep a block from being huge.
type block struct {
	huge bool
	cold uint16 // pages given back; protected by pool.mu
}

const (
	hugePage = 2 << 20
	// hugePause lies between two blocks: making one takes some 0.3 ms, in which whoever touches it
	// waits.
	hugePause = 20 * time.Millisecond
	// strainedPause lies between two blocks while commands have to wait for loops anyway.
	strainedPause = 200 * time.Millisecond
)

func (b *blocks) init(pages, pageSize int) {
	b.pages = uint32(hugePage / pageSize)
	b.all = make([]block, pages/int(b.pages))
}

func (b *blocks) of(pg uint32) uint32 { return pg / b.pages }

// filled starts making huge pages, after a block has become whole.
func (p *pool) filled() {
	b := &p.blocks
	if b.closed.Load() || !b.running.CompareAndSwap(false, true) {
		return
	}
	b.ended.Go(func() {
		for next := uint32(0); ; next++ {
			var more bool
			if next, more = p.makeHuge(next); !more || b.closed.Load() {
				break
			}
			b.rest()
		}
		b.running.Store(false)
	})
}

// rest pauses between two blocks, and for longer while commands have to wait. It looks often, because
// nobody knows the strain of a time in which nobody looked.
func (b *blocks) rest() {
	time.Sleep(hugePause)
	for n := hugePause; n < strainedPause && !b.closed.Load() && b.strained != nil && b.strained(); n += hugePause {
		time.Sleep(hugePause)
	}
}

// makeHuge makes the first whole block from the one numbered from on huge, and returns its number,
// if there is one.
func (p *pool) makeHuge(from uint32) (block uint32, found bool) {
	b := &p.blocks
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; from < uint32(len(b.all)); from++ {
		if !p.whole(from) {
			from |= p.perWindow()/b.pages - 1 // the rest of its window is not used either
			continue
		}
		if b.all[from].huge || !p.untouched(from) {
			continue
		}
		p.cells.collapse(uint64(from)*hugePage, hugePage)
		b.all[from].huge = true
		return from, true
	}
	return 0, false
}

// whole reports whether all pages of the block have been used.
func (p *pool) whole(block uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (block+1)*p.blocks.pages <= p.windows[p.windowOf(block*p.blocks.pages)].fresh.Load()
}

// untouched reports whether none of the block's pages is given back.
func (p *pool) untouched(block uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blocks.all[block].cold == 0
}

// breakUp makes the block of a page that is given back small.
func (p *pool) breakUp(pg uint32) {
	b := &p.blocks
	block := b.of(pg)
	p.mu.Lock()
	b.all[block].cold++
	p.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[block].huge {
		p.cells.split(uint64(block)*hugePage, hugePage)
		b.all[block].huge = false
	}
}

// close stops the background work and waits for its end.
func (b *blocks) close() {
	b.closed.Store(true)
	b.ended.Wait()
}
