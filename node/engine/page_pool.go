package engine

import (
	"sync"
	"sync/atomic"
)

// pool is the node's memory: the one budget that all memory is charged to before it is used, and
// the pages that no shard has.
type pool struct {
	cells    *cells
	pages    []page
	table    arena // behind pages
	pageSize int
	keepWarm int // empty pages kept with their memory, charged all the while; they save a fault per 4 KiB on reuse
	ahead    int // pages that commands keep free for one another, see evict_ahead.go

	used     atomic.Int64
	reserved atomic.Int64 // what shards with fewer than ownPages lack of them
	max      atomic.Int64
	policy   atomic.Uint32 // a Policy

	outsideMu sync.Mutex   // innermost lock, held so that used and outside change together
	outside   atomic.Int64 // part of used that is the caller's memory, see Engine.Charge

	indexPages atomic.Int64 // pages that hold indexes and so cannot be reclaimed

	tick atomic.Uint32 // visits of pages by the hands of all clocks: the time in which pages age

	blocks blocks

	mu          sync.Mutex // innermost lock but that of a mapping.Space
	windows     []freePages
	windowShift uint8 // logarithm of the number of pages in a window
	warms       int   // empty pages with memory behind them
}

// freePages are the pages of a window that no shard has.
type freePages struct {
	warm  uint32        // list of empty pages with memory behind them
	cold  uint32        // list of empty pages without
	first uint32        // stays empty: its first handle means none
	fresh atomic.Uint32 // pages from here on were never used; changed with pool.mu held
	end   uint32        // of the window
	full  atomic.Bool   // there was no page when one was wanted, and none has come back
}

func (w *freePages) init(first, end uint32) {
	w.first, w.end = first, end
	w.fresh.Store(first + 1)
}

// windowOf is the number of the window that has the page.
func (p *pool) windowOf(pg uint32) uint32 { return pg >> p.windowShift }

func (p *pool) perWindow() uint32 { return 1 << p.windowShift }

func (p *pool) pageCost() int64 { return int64(p.pageSize) + pageMetaSize }

// take returns an empty page of a window, 0 when the budget has none. own says that it is one of those
// that are reserved for the shard. Others leave so many pages.
func (p *pool) take(window int, upkeep, own bool, leave int) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.windows[window]
	limit := p.limit(upkeep)
	if own {
		limit += p.pageCost()
	} else if leave > 0 && p.freeLocked() <= leave {
		return 0
	}
	if pg := w.warm; pg != 0 && (own || p.used.Load()+p.reserved.Load() <= limit) {
		w.warm = p.pages[pg].next
		p.warms--
		return pg
	}
	if !p.chargeUpTo(p.pageCost(), limit) {
		return 0
	}
	if pg := w.cold; pg != 0 {
		if !p.cells.grow(p.placeOf(pg), 0, int64(p.pageSize)) {
			p.refund(p.pageCost())
			return 0
		}
		w.cold = p.pages[pg].next
		block := &p.blocks.all[p.blocks.of(pg)]
		if block.cold--; block.cold == 0 {
			p.filled()
		}
		return pg
	}
	pg := w.fresh.Load()
	// A window is full when its shards have far more of all memory than others. Unlike the budget, the
	// system has memory but where it commits no more to this process.
	w.full.Store(pg == w.end)
	if pg == w.end || !p.growNext(w, pg) {
		p.refund(p.pageCost())
		return 0
	}
	w.fresh.Store(pg + 1)
	if (pg+1)%p.blocks.pages == 0 {
		p.filled()
	}
	return pg
}

// isFull reports whether the window has no page, whatever the budget has.
func (p *pool) isFull(window int) bool { return p.windows[window].full.Load() }

// growNext lets the window's next page, pg, and its bookkeeping be written.
func (p *pool) growNext(w *freePages, pg uint32) bool {
	base, used := uint64(w.first+1)*uint64(pageMetaSize), int64(w.inUse())*pageMetaSize
	if !p.table.grow(base, used, used+pageMetaSize) {
		return false
	}
	if !p.cells.grow(p.placeOf(pg), 0, int64(p.pageSize)) {
		p.table.space.Leave(int(base), int(used+pageMetaSize), int(used))
		return false
	}
	return true
}

func (p *pool) placeOf(pg uint32) uint64 { return uint64(pg) * uint64(p.pageSize) }

// give takes back an empty page. It stays warm while few are and the budget is not exceeded: after
// SetMaxBytes, or by a page that is now reserved for the shard that had it.
func (p *pool) give(pg uint32) {
	p.mu.Lock()
	if p.warms < p.keepWarm && p.used.Load()+p.reserved.Load() <= p.max.Load() {
		w := &p.windows[p.windowOf(pg)]
		p.pages[pg].next = w.warm
		w.warm = pg
		w.full.Store(false)
		p.warms++
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.chill(pg)
}

// chill returns the page's memory to the system. The budget gets it only after that, so that no
// bytes of it are counted for two uses.
func (p *pool) chill(pg uint32) {
	p.breakUp(pg)
	p.cells.shrink(p.placeOf(pg), int64(p.pageSize), 0)
	p.mu.Lock()
	w := &p.windows[p.windowOf(pg)]
	p.pages[pg].next = w.cold
	w.cold = pg
	w.full.Store(false)
	p.mu.Unlock()
	p.refund(p.pageCost())
}

// chillWarm releases one warm page, for memory that is not made of pages.
func (p *pool) chillWarm() bool {
	if pg := p.takeWarm(); pg != 0 {
		p.chill(pg)
		return true
	}
	return false
}

// chillElsewhere is chillWarm for a shard's next page: a warm one of its window is as good as any.
func (p *pool) chillElsewhere(window int) bool {
	return len(p.windows) > 1 && !p.hasWarm(window) && p.chillWarm()
}

func (p *pool) hasWarm(window int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.windows[window].warm != 0
}

func (p *pool) takeWarm() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.windows {
		w := &p.windows[i]
		if pg := w.warm; pg != 0 {
			w.warm = p.pages[pg].next
			p.warms--
			return pg
		}
	}
	return 0
}

// inUse is how many pages were ever used.
func (p *pool) inUse() (n int) {
	for i := range p.windows {
		n += p.windows[i].inUse()
	}
	return n
}

func (w *freePages) inUse() int { return int(w.fresh.Load() - w.first - 1) }

// nth is the number of the i-th page that was ever used, in any order that stays while none is added.
func (p *pool) nth(i int) uint32 {
	for number := range p.windows {
		w := &p.windows[number]
		n := w.inUse()
		if i < n {
			return w.first + 1 + uint32(i)
		}
		i -= n
	}
	return 0
}

// after is the page behind pg in the round of all that were ever used. There must be one. pg may be 0.
func (p *pool) after(pg uint32) uint32 {
	at := int(p.windowOf(pg))
	if next := pg + 1; next < p.windows[at].fresh.Load() {
		return next
	}
	for {
		if at++; at == len(p.windows) {
			at = 0
		}
		if w := &p.windows[at]; w.inUse() > 0 {
			return w.first + 1
		}
	}
}

// owner is the shard that has, or had before a Reset, a page picked by r from all that were ever
// used, -1 if none has. Shards are thereby picked in proportion to the memory they hold.
func (p *pool) owner(r uint32) int {
	n := p.inUse()
	if n == 0 {
		return -1
	}
	return p.pages[p.nth(int(uint64(r)*uint64(n)>>32))].mark().shard()
}
