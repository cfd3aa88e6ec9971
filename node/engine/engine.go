package engine

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Partitions is how many partitions the keys are divided into.
const Partitions = 4096

// Errors of the operations that need memory.
var (
	ErrMemory        = errors.New("no memory for the value within the limit")
	ErrNeverFits     = fmt.Errorf("%w, even if all others were evicted", ErrMemory)
	ErrTooBig        = fmt.Errorf("%w for one value", ErrMemory)
	ErrKeyTooLong    = fmt.Errorf("key is longer than %d bytes", MaxKeyLen)
	ErrValueTooLarge = fmt.Errorf("value is larger than %d bytes", MaxValueLen)
	ErrNotFound      = errors.New("no such key")
)

// Config is what an Engine is made of.
type Config struct {
	MaxBytes int64  // limit of everything the engine has: values, index, bookkeeping, fragmentation
	Shards   int    // locks; a power of two up to Partitions, see ShardsFor
	Seed     uint64 // of the keys' hash; the same on all nodes of a cluster, so that a walk's cursor holds on any
	Policy   Policy
	Forms    map[Type]Form // of the types whose values may have parts
	Strained func() bool   // whether commands have to wait, so that what can wait should; nil: never
	Warm     int           // empty pages that are kept with their memory; 0: a 64th of the limit, up to maxWarmPages
	Share    int64         // a value with parts grows to a Share-th of MaxBytes (Parts.MayGrow); 0: to all of it
	Outside  int64         // part of MaxBytes that is the caller's from the start, as if by Charge, and never refunded
	Servers  Servers       // of those that wait for keys; needed by Await
	// Announce is called for an event of a key of a section, with its shard locked; nil: nobody wants to know. It
	// must not call the engine. key is a view, valid until it returns. Nothing is announced of copies.
	Announce func(section uint16, key []byte, event Event)
	// Revoke is called when a key changes that was marked, and Changed for each change after TellChanges, both
	// with the key's shard locked. They must not call the engine. actor is who changes it (Txn.As), or 0.
	// key is a view, valid until they return. A mark may be told for another key than its own.
	Revoke  func(w Watch, key []byte, actor uint64)
	Changed func(key []byte, actor uint64)

	windowReach int64 // if not 0, another one: for tests
}

// Engine holds the keys and values of a node. Its methods may be called from any goroutine.
type Engine struct {
	cells   cells   // the arena of pages
	windows []cells // its parts, a power of two; a shard's cells are in the one that its number ends in
	classes classes
	large   *largeSpace
	pool    pool
	indexes arena // behind the tables of indexes, see section.go
	ghosts  arena // the shards' ghosts, one behind the other
	balance balance
	fixed   atomic.Int64 // bytes that are there from the start, and tables
	share   int64        // see Config

	tablesMu    sync.Mutex    // protects who makes a table, and stands behind the shards' locks
	tablesInUse atomic.Uint32 // a bit for each database whose table has memory

	shardShift   uint8 // logarithm of the number of shards
	shards       []shard
	resetMu      sync.Mutex    // outermost lock: one Reset at a time
	limitMu      sync.Mutex    // outermost lock: one SetMaxBytes at a time
	limits       atomic.Int64  // how many limits were set: the newest counts
	limit        atomic.Int64  // what pool.max is, or becomes
	crowdSeed    maphash.Seed  // known to nobody outside
	sweeper      atomic.Uint32 // the page that Sweep has looked at last
	tidier       atomic.Uint32 // shard whose indexes Sweep tidies next
	dice         atomic.Uint32 // picks victims for those who hold no shard
	cut          atomic.Int32  // number + 1 of the shard in which they go on, see evict_slice.go; 0: any
	feeds        feeds
	forms        [lastForm + 1]Form // by Type
	incarnations atomic.Uint32
	pinnedParts  atomic.Int64 // bytes that ValuePins keep
	servers      Servers
	announces    func(section uint16, key []byte, event Event)
	revoke       func(w Watch, key []byte, actor uint64)
	changed      func(key []byte, actor uint64)
	announcesNew atomic.Bool
	spares       [numSpares]atomic.Int32 // of each kind, in how many places there may be memory to be had
}

const (
	minPageSize   = 16 << 10
	maxPageSize   = 64 << 10
	pagesPerShard = 128 // that many at least, before pages become larger than the minimum
	bytesPerShard = 64 << 20
	// A shard needs pages for its index, in a few classes, and for some records.
	minPagesPerShard = 8
	bodiesPerPage    = 4        // a cell takes at most a quarter of a page
	windowReach      = 32 << 30 // what 32 bits name in grains of 8
	minReach         = 1 << 30  // addresses are reserved for this or twice the limit, so that it can be raised
	maxWarmPages     = 64
)

// New reserves addresses for the engine. Memory is taken as it is needed, up to cfg.MaxBytes.
func New(cfg Config) (*Engine, error) {
	n := cfg.Shards
	if n < 1 || n > Partitions || n&(n-1) != 0 {
		return nil, fmt.Errorf("cannot make an engine of %d shards: want a power of two up to %d", n, Partitions)
	}
	e := &Engine{shards: make([]shard, n), crowdSeed: maphash.MakeSeed(), shardShift: uint8(bits.TrailingZeros(uint(n)))}
	e.SetPolicy(cfg.Policy)
	e.incarnations.Store(rand.Uint32())
	for typ, form := range cfg.Forms {
		e.forms[typ] = form
	}
	e.pool.outside.Store(cfg.Outside)
	e.fixed.Store(fixedSize(n))
	pageSize := pageSizeFor(n, cfg.MaxBytes)
	e.pool.pageSize = pageSize
	if err := e.checkLimit(cfg.MaxBytes); err != nil {
		return nil, err
	}
	if err := e.reserve(cfg); err != nil {
		return nil, err
	}
	e.balance.share.Store(startShare)
	e.pool.max.Store(cfg.MaxBytes)
	e.limit.Store(cfg.MaxBytes)
	e.pool.used.Store(e.fixed.Load() + cfg.Outside)
	e.pool.keepWarm = cmp.Or(cfg.Warm, min(maxWarmPages, int(cfg.MaxBytes/int64(pageSize)/64)))
	e.pool.ahead = max(minAhead, n)
	e.pool.reserved.Store(int64(n) * ownPages * e.pool.pageCost())
	e.pool.blocks.strained, e.share, e.servers = cfg.Strained, cfg.Share, cfg.Servers
	e.announces, e.revoke, e.changed = cfg.Announce, cfg.Revoke, cfg.Changed
	for i := range e.shards {
		s := &e.shards[i]
		s.e, s.number = e, i
		s.window = i & (len(e.windows) - 1)
		s.cells = &e.windows[s.window]
		s.indexes.s, s.indexes.cells = s, s.cells
		s.slabs.s, s.slabs.e, s.slabs.cells = s, e, s.cells
		s.dropped.s, s.feeds.s, s.values.s, s.small.s, s.clocks.s, s.copies.s = s, s, s, s, s, s
		s.units = &units{ended: sync.Cond{L: &s.mu}}
		s.seed.Store(cfg.Seed)
		s.mark = mark(i) + 1
		s.tables = partitionTables(&e.indexes)[i*Partitions/n:]
		s.partitions = s.tables[:Partitions/n]
		s.dice = uint32(i) + 1
		s.clocks.pool, s.clocks.squeezed = &e.pool, noClass
		s.steps = unlimited
	}
	e.large.startCollector()
	return e, nil
}

// reserve maps the arenas for limits up to twice maxBytes. A process that may have few addresses gets
// them for less, but at least for maxBytes.
func (e *Engine) reserve(cfg Config) error {
	for reach := powerFrom(max(minReach, 2*cfg.MaxBytes)); ; reach /= 2 {
		err := e.reserveFor(reach, cmp.Or(cfg.windowReach, windowReach))
		if err == nil {
			return nil
		}
		_ = e.unmap()
		if reach/2 < cfg.MaxBytes {
			return err
		}
	}
}

// powerFrom is the least power of two that is n at least.
func powerFrom(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }

// reserveFor maps the arenas for limits up to reach, a power of two. With grains of 8 bytes handles reach
// window bytes.
func (e *Engine) reserveFor(reach, window int64) error {
	grainShift := uint8(3)
	for reach>>grainShift > int64(len(e.shards))<<32 {
		grainShift++
	}
	pageSize := e.pool.pageSize
	e.classes = makeClasses(pageSize, grainShift)
	e.cells.pageUnitsShift = uint8(bits.TrailingZeros(uint(pageSize))) - grainShift
	e.cells.grainShift, e.cells.e = grainShift, e
	e.cells.directoryShift = uint8(bits.TrailingZeros(uint(pageSize / handleSize)))
	var err error
	if e.cells.arena, err = reserve(int(reach), reach/2); err != nil {
		return err
	}
	if e.large, err = reserveLarge(reach, &e.pool); err != nil {
		return err
	}
	e.cells.maxInline = pageSize / bodiesPerPage
	e.makeWindows(int(max(reach/int64(len(e.shards)), min(reach, window<<(grainShift-3)))))
	pages := int(reach) / pageSize
	if e.pool.table, err = reserve(pages*int(pageMetaSize), 0); err != nil {
		return err
	}
	if e.indexes, err = reserve(Databases*int(tableSize), 0); err != nil {
		return err
	}
	if e.ghosts, err = reserve(e.ghostReach()*len(e.shards)*ghostSetSize, 0); err != nil {
		return err
	}
	if err = e.feeds.init(&e.pool); err != nil {
		return err
	}
	e.pool.cells = &e.cells
	e.pool.pages = pageTable(&e.pool.table, pages)
	e.pool.blocks.init(pages, pageSize)
	if !e.indexes.grow(0, 0, tableSize) {
		return ErrMemory
	}
	e.tablesInUse.Store(1)
	return nil
}

// makeWindows divides the arena of pages into windows of size bytes. So a handle has 32 bits, and a
// cell need not be longer, when the limit is high. Only a test can ask for windows that are too
// small.
func (e *Engine) makeWindows(size int) {
	if size < hugePage {
		panic("BUG: a window is smaller than a huge page")
	}
	perWindow := uint32(size / e.pool.pageSize)
	e.cells.pageMask = perWindow - 1
	e.windows = make([]cells, len(e.cells.mem)/size)
	e.pool.windows = make([]freePages, len(e.windows))
	e.pool.windowShift = uint8(bits.TrailingZeros32(perWindow))
	for i := range e.windows {
		w := &e.windows[i]
		*w = e.cells
		w.arena = e.cells.part(i*size, size)
		w.start = uint32(i * size >> windowUnitShift)
		w.firstPage = uint32(i) * perWindow
		e.pool.windows[i].init(w.firstPage, w.firstPage+perWindow)
	}
}

// windowOf is the window that has the page.
func (e *Engine) windowOf(pg uint32) *cells { return &e.windows[e.pool.windowOf(pg)] }

// Close gives all memory back. Nothing may use the engine, or a view into it, any more, with the
// exception of Stats and Count, of pins, and of staged values to be discarded: the space of large
// bodies stays until the last of them is gone.
func (e *Engine) Close() error {
	e.large.stopCollector()
	e.pool.blocks.close()
	e.lockAll()
	defer e.unlockAll()
	for i := range e.shards {
		e.shards[i].partitions = nil // no keys, for Stats
	}
	return e.unmap()
}

func (e *Engine) unmap() error {
	err := errors.Join(e.cells.close(), e.pool.table.close(), e.indexes.close(), e.ghosts.close(), e.feeds.arena.close())
	if e.large != nil {
		err = errors.Join(err, e.large.leave())
	}
	return err
}

// lockAll locks the shards in ascending order. A goroutine that holds one shard only tries to lock
// others.
func (e *Engine) lockAll() {
	for i := range e.shards {
		e.shards[i].mu.Lock()
	}
}

func (e *Engine) unlockAll() {
	for i := range e.shards {
		e.shards[i].mu.Unlock()
	}
}

// shardOf is the shard of a partition, or of a section.
func (e *Engine) shardOf(p uint16) *shard { return &e.shards[int(p)&(len(e.shards)-1)] }
