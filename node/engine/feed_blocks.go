package engine

import (
	"sync"
	"sync/atomic"
)

// feeds has the receivers of an Engine, and the blocks that their logs are made of, outside the Go
// heap. A block is charged as long as memory stands behind it.
//
// A function that logs holds a shard and, when it logs an eviction, is making room at that moment.
// So it takes blocks from a reserve, which is filled by functions that hold no shard.
type feeds struct {
	receivers []atomic.Pointer[receiver] // by Receiver
	pool      *pool
	arena     arena
	reserve   atomic.Int32 // blocks that are charged and that no log has
	charged   atomic.Int64 // bytes of blocks that have memory
	tired     atomic.Int32 // so often refillFeeds is not to try, since nothing could be had

	mu    sync.Mutex // innermost lock but that of a mapping.Space
	next  []uint32   // by block: the one behind it in its list, 0 for none
	ends  []uint16   // by block of a log: where it ends, if others were spliced behind it; 0: at its end
	warm  uint32     // list of the reserve
	cold  uint32     // list of blocks without memory
	fresh uint32     // blocks from here on were never used
}

const (
	blockSize = osPage
	// maxFeeds is the most that all logs may have.
	maxFeeds = 64 << 20
	// Where the limit is low, all logs may have a part of it, and one log a part of that.
	feedsShare = 8
	logShare   = 4
	// The reserve is filled to so many blocks when it has less than half of that, and trimmed to
	// twice of it.
	feedReserve  = 128
	reserveShare = 4 // it is at most one block in so many of all logs'
	// retryRefill is how often nothing is tried after nothing could be had.
	retryRefill = 50
)

func (f *feeds) init(p *pool) (err error) {
	f.pool, f.fresh = p, 1
	f.receivers = make([]atomic.Pointer[receiver], MaxReceivers)
	f.arena, err = reserve(maxFeeds+blockSize, maxFeeds)
	return err
}

// most is how many bytes all logs may have.
func (f *feeds) most() int { return int(min(maxFeeds, f.pool.max.Load()/feedsShare)) }

// longest is how many bytes one log may have.
func (f *feeds) longest() int { return min(maxLog, f.most()/logShare) }

// wanted is how many blocks the reserve should have.
func (f *feeds) wanted() int { return min(feedReserve, f.most()/blockSize/reserveShare) }

func (f *feeds) block(b uint32) []byte {
	return f.arena.bytes(uint64(b)*blockSize, blockSize)
}

// content is what a block of a log has, or has room for.
func (f *feeds) content(b uint32) []byte {
	if end := f.ends[b]; end != 0 {
		return f.block(b)[:end]
	}
	return f.block(b)
}

// prepare allocates the lists of blocks with the first feed.
func (f *feeds) prepare() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = make([]uint32, maxFeeds/blockSize+1)
		f.ends = make([]uint16, len(f.next))
	}
}

// take returns a block in no list, 0 if there is none.
func (f *feeds) take() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.warm == 0 && !f.addLocked() {
		return 0
	}
	b := f.warm
	f.warm, f.next[b], f.ends[b] = f.next[b], 0, 0
	f.reserve.Add(-1)
	return b
}

// addLocked adds a block to the reserve, if the budget has it.
func (f *feeds) addLocked() bool {
	if f.charged.Load()+blockSize > int64(f.most()) || !f.pool.chargeUpTo(blockSize, f.pool.logLimit()) {
		return false
	}
	b := f.cold
	if b == 0 {
		b = f.fresh
	}
	if !f.arena.grow(uint64(b)*blockSize, 0, blockSize) {
		f.pool.refund(blockSize)
		return false
	}
	f.charged.Add(blockSize)
	if b == f.fresh {
		f.fresh++
	} else {
		f.cold = f.next[b]
	}
	f.next[b], f.warm = f.warm, b
	f.reserve.Add(1)
	return true
}

// give puts a list of blocks into the reserve.
func (f *feeds) give(first uint32) {
	if first == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, last := int32(1), first
	for ; f.next[last] != 0; last = f.next[last] {
		n++
	}
	f.next[last], f.warm = f.warm, first
	f.reserve.Add(n)
}

// trim gives the blocks of the reserve above keep back to the system and to the budget.
func (f *feeds) trim(keep int) {
	for int(f.reserve.Load()) > keep {
		if !f.chill() {
			return
		}
	}
}

func (f *feeds) open() bool {
	for i := range f.receivers {
		if f.receivers[i].Load() != nil {
			return true
		}
	}
	return false
}

// chill gives back a block of the reserve.
func (f *feeds) chill() bool {
	f.mu.Lock()
	b := f.warm
	if b != 0 {
		f.warm = f.next[b]
		f.reserve.Add(-1)
	}
	f.mu.Unlock()
	if b == 0 {
		return false
	}
	f.arena.shrink(uint64(b)*blockSize, blockSize, 0)
	f.mu.Lock()
	f.next[b], f.cold = f.cold, b
	f.mu.Unlock()
	f.charged.Add(-blockSize)
	f.pool.refund(blockSize)
	return true
}

// low reports whether the reserve should be filled.
func (f *feeds) low() bool { return 2*int(f.reserve.Load()) < f.wanted() }

// refillFeeds fills the reserve if it is low, and makes room without waiting. The caller may hold a
// shard, which is then left alone.
func (e *Engine) refillFeeds() {
	f := &e.feeds
	if !f.low() {
		return
	}
	wanted := f.wanted()
	if f.tired.Load() > 0 {
		f.tired.Add(-1)
		return
	}
	for int(f.reserve.Load()) < wanted {
		f.mu.Lock()
		full := f.charged.Load()+blockSize > int64(f.most()) || !e.leavesRoom()
		added := !full && f.addLocked()
		f.mu.Unlock()
		if added {
			continue
		}
		if full {
			return
		}
		if further, _ := e.reclaimAnywhere(); !further {
			f.tired.Store(retryRefill)
			return
		}
	}
}
