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

	used     atomic.Int64
	reserved atomic.Int64 // what shards with fewer than ownPages lack of them
	max      atomic.Int64
	policy   atomic.Uint32 // a Policy

	outsideMu sync.Mutex   // innermost lock, held so that used and outside change together
	outside   atomic.Int64 // part of used that is the caller's memory, see Engine.Charge

	indexPages atomic.Int64 // pages that hold indexes and so cannot be reclaimed

	tick atomic.Uint32 // visits of pages by the hands of all clocks: the time in which pages age

	blocks blocks

	mu    sync.Mutex // innermost lock: nothing is locked under it
	warm  uint32     // list of empty pages with memory behind them
	warms int
	cold  uint32 // list of empty pages without
	fresh uint32 // pages from here on were never used
}

func (p *pool) pageCost() int64 { return int64(p.pageSize) + pageMetaSize }

// take returns an empty page, 0 when the budget has none. own says that it is one of those that are
// reserved for the shard.
func (p *pool) take(upkeep, own bool) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.limit(upkeep)
	if own {
		limit += p.pageCost()
	}
	if pg := p.warm; pg != 0 && (own || p.used.Load()+p.reserved.Load() <= limit) {
		p.warm = p.pages[pg].next
		p.warms--
		return pg
	}
	if !p.chargeUpTo(p.pageCost(), limit) {
		return 0
	}
	if pg := p.cold; pg != 0 {
		if !p.cells.grow(p.placeOf(pg), 0, int64(p.pageSize)) {
			p.refund(p.pageCost())
			return 0
		}
		p.cold = p.pages[pg].next
		block := &p.blocks.all[p.blocks.of(pg)]
		if block.cold--; block.cold == 0 {
			p.filled()
		}
		return pg
	}
	// Unlike the budget, the addresses suffice but for a limit near the end of the handles' reach, and
	// the system has the memory but where it commits no more to this process.
	if p.fresh == uint32(len(p.pages)) || !p.growTable(p.fresh) || !p.cells.grow(p.placeOf(p.fresh), 0, int64(p.pageSize)) {
		p.refund(p.pageCost())
		return 0
	}
	p.fresh++
	if p.fresh%p.blocks.pages == 0 {
		p.filled()
	}
	return p.fresh - 1
}

// growTable lets the bookkeeping of one more page be written. Asked twice for the same page, it keeps
// some of the table writable for good.
func (p *pool) growTable(pg uint32) bool {
	return p.table.grow(0, int64(pg)*pageMetaSize, int64(pg+1)*pageMetaSize)
}

func (p *pool) placeOf(pg uint32) uint64 { return uint64(pg) * uint64(p.pageSize) }

// give takes back an empty page. It stays warm while few are and the budget is not exceeded: after
// SetMaxBytes, or by a page that is now reserved for the shard that had it.
func (p *pool) give(pg uint32) {
	p.mu.Lock()
	if p.warms < p.keepWarm && p.used.Load()+p.reserved.Load() <= p.max.Load() {
		p.pages[pg].next = p.warm
		p.warm = pg
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
	p.pages[pg].next = p.cold
	p.cold = pg
	p.mu.Unlock()
	p.refund(p.pageCost())
}

// chillWarm releases one warm page, for memory that is not made of pages.
func (p *pool) chillWarm() bool {
	p.mu.Lock()
	pg := p.warm
	if pg != 0 {
		p.warm = p.pages[pg].next
		p.warms--
	}
	p.mu.Unlock()
	if pg != 0 {
		p.chill(pg)
	}
	return pg != 0
}

// inUse is how many pages were ever used, 1 to inUse.
func (p *pool) inUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.fresh) - 1
}

// owner is the shard that has, or had before a Reset, a page picked by r from all that were ever
// used, -1 if none has. Shards are thereby picked in proportion to the memory they hold.
func (p *pool) owner(r uint32) int {
	n := p.inUse()
	if n == 0 {
		return -1
	}
	return p.pages[1+uint64(r)*uint64(n)>>32].mark().shard()
}
