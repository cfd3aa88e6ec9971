package engine

import "fmt"

// checkLimit refuses a limit in which not every shard could have its few pages.
func (e *Engine) checkLimit(n int64) error {
	smallest := smallest(len(e.shards), e.pool.outside.Load(), e.pool.pageSize) + e.fixed.Load() - fixedSize(len(e.shards))
	if n < smallest {
		const mb = 1 << 20
		return fmt.Errorf("a limit of %d bytes is too small for %d shards: the smallest is %dmb", n, len(e.shards), (smallest+mb-1)/mb)
	}
	return nil
}

func pageSizeFor(shards int, maxBytes int64) int {
	size := minPageSize
	for size < maxPageSize && int64(size)*2*pagesPerShard*int64(shards) <= maxBytes {
		size *= 2
	}
	return size
}

// SmallestLimit is the least limit that an engine made for maxBytes, with so many shards, can have
// beside so many bytes outside.
func SmallestLimit(shards int, maxBytes, outside int64) int64 {
	return smallest(shards, outside, pageSizeFor(shards, maxBytes))
}

func smallest(shards int, outside int64, pageSize int) int64 {
	return fixedSize(shards) + outside + int64(shards)*minPagesPerShard*(int64(pageSize)+pageMetaSize)
}

// fixedSize is what an engine of n shards has from the start.
func fixedSize(n int) int64 { return engineSize + int64(n)*shardSize + tableSize }

// CheckMaxBytes returns the error with which SetMaxBytes would refuse a limit before it changes anything.
func (e *Engine) CheckMaxBytes(n int64) error {
	if err := e.checkLimit(n); err != nil {
		return err
	}
	if reach := int64(len(e.cells.mem)); n > reach {
		return fmt.Errorf("cannot raise the limit to %d bytes: addresses were reserved for %d", n, reach)
	}
	return nil
}

// SetMaxBytes changes the limit; when it is lowered, records are evicted until they fit. It is an
// error when the limit is too small, beyond what addresses were reserved for at the start, or not
// reached because nothing more may be evicted; in the last case the limit holds nevertheless, for
// everything new.
func (e *Engine) SetMaxBytes(n int64) error {
	return e.SetMaxBytesWhile(n, func() bool { return true })
}

// SetMaxBytesWhile is SetMaxBytes, but evicts no more when still returns false, or when another limit
// is set meanwhile, which then counts.
func (e *Engine) SetMaxBytesWhile(n int64, still func() bool) error {
	if err := e.CheckMaxBytes(n); err != nil {
		return err
	}
	turn := e.limits.Add(1)
	e.limitMu.Lock()
	defer e.limitMu.Unlock()
	newest := func() bool { return e.limits.Load() == turn }
	if !newest() {
		return nil
	}
	e.limit.Store(n)
	defer func() {
		if newest() {
			e.pool.max.Store(n)
		}
	}()
	// The limit follows what is freed, at a distance. So commands find memory meanwhile even if all that
	// can be freed is in one shard, which is locked for that. If they take as much as is freed for long,
	// the limit drops below what is used, and they help.
	taken := func() int64 { return e.pool.used.Load() + e.pool.reserved.Load() }
	page := int64(e.pool.pageSize)
	patience := shrinkPatience * ((taken()-n)/page + 1)
	for now := taken(); now > n && newest() && still(); now = taken() {
		distance := shrinkSlack * page
		if patience--; patience < 0 {
			distance = -page
		}
		e.pool.max.Store(max(n, min(e.pool.max.Load(), now+distance)))
		further := e.makeRoom()
		// The indexes follow, or all records would have to go for indexes that nobody needs any more.
		for i, n := 0, tidyAtOnce; n == tidyAtOnce || !further && i < len(e.shards); i++ {
			n = e.tidyNext()
			further = further || n > 0
		}
		if !further && taken() >= now { // nor has anybody else
			return fmt.Errorf("cannot shrink to %d bytes: %w", n, ErrMemory)
		}
	}
	return nil
}

const (
	shrinkSlack    = 16 // pages by which the limit stays above what is used
	shrinkPatience = 16 // times that room is made for each page, before the limit drops below
)

// upkeepShare is the part of memory that new values may not have where not every key may be
// evicted. When SET is refused, connections are still served and EXPIRE works, although a first
// expiry may take a larger cell.
const upkeepShare = 64

// limit is how many bytes may be used, for upkeep or otherwise.
func (p *pool) limit(upkeep bool) int64 {
	limit := p.max.Load()
	if !upkeep && Policy(p.policy.Load()) != AllKeys {
		limit -= limit / upkeepShare
	}
	return limit
}

// logLimit is how many bytes may be used when logs of feeds take more: half of what new values may
// not have is left to the rest, however far a receiver lags.
func (p *pool) logLimit() int64 { return (p.limit(false) + p.limit(true)) / 2 }

// ShardsFor is how many shards suit an engine that so many threads use: 16 for each, so that they
// rarely wait for one another, but fewer where the limit is low. Each shard has pages of its own
// for each size of values, and what is free on them nobody else can use: with 512 MiB and sizes
// from 16 bytes to 1 MiB, 8 shards hold 88 % of live data, 32 hold 83 %.
func ShardsFor(threads int, maxBytes int64) int {
	n := 1
	for n < 4*threads || n < 16*threads && 2*int64(n)*bytesPerShard <= maxBytes {
		n *= 2
	}
	return min(n, Partitions)
}
