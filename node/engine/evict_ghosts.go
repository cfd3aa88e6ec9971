package engine

// ghosts remembers evicted keys by 16 bits each. A key that returns soon enters the main queue at
// once, and the queue that evicted it tells which queue should be longer (see adapt). Two keys are
// mistaken for one another once in some 10,000 times; then a new key is kept longer than it should
// be.
type ghosts struct {
	sets []ghostSet // a power of two, outside the Go heap
}

// ghostSet has the ghosts of the keys that fall into it, each kind with the youngest first; 0 is no
// ghost.
type ghostSet struct {
	small [6]uint16
	main  [2]uint16
}

const (
	ghostSetSize = 16
	minGhostSets = osPage / ghostSetSize
	// recentGhosts of the small ones are compared with the main ones: as many as there are of
	// those.
	recentGhosts = 2
	// keysPerSet is how many keys there are for each set before the sets are doubled: a ghost then
	// lives for half to all of the time in which as many records as there are have been evicted.
	keysPerSet = 12
)

// ghost is a remembered key: its set, and 16 bits to tell it by.
type ghost uint64

func ghostOf(section uint16, tag uint32) ghost {
	return ghost((uint64(section)<<32 | uint64(tag)) * prime1)
}

// mark is never 0.
func (of ghost) mark() uint16 { return uint16(of>>16) | 1 }

func (g *ghosts) set(of ghost) *ghostSet {
	return &g.sets[uint32(of>>32)&uint32(len(g.sets)-1)]
}

// add remembers a key that was evicted from the queue k.
func (g *ghosts) add(of ghost, k kind) {
	if len(g.sets) == 0 {
		return
	}
	set := g.set(of)
	if k == mainCells {
		set.main[0], set.main[1] = of.mark(), set.main[0]
		return
	}
	copy(set.small[1:], set.small[:])
	set.small[0] = of.mark()
}

// haunted is what the ghosts know of a key that comes in.
type haunted uint8

const (
	unknown     haunted = iota
	longAgo             // evicted from the small queue
	recentSmall         // and that not long ago
	recentMain          // evicted from the main queue not long ago
)

// take returns what is remembered of a key, and forgets it.
func (g *ghosts) take(of ghost) haunted {
	if len(g.sets) == 0 {
		return unknown
	}
	set, mark := g.set(of), of.mark()
	for i, m := range set.main {
		if m == mark {
			set.main[i] = 0
			return recentMain
		}
	}
	for i, m := range set.small {
		if m != mark {
			continue
		}
		set.small[i] = 0
		if i < recentGhosts {
			return recentSmall
		}
		return longAgo
	}
	return unknown
}

// growGhosts doubles the sets when there are too few for the number of records. What the old sets
// remember stays in one half of the new ones, where half of the keys look.
func (s *shard) growGhosts() {
	n := len(s.ghosts.sets)
	more := max(minGhostSets, n)
	if int64(n*keysPerSet) >= s.keys() || n+more > s.e.ghostReach() {
		return
	}
	cost := int64(more * ghostSetSize)
	if s.e.pool.toKeep() > 0 && s.e.pool.free() < int(cost/s.e.pool.pageCost())+2 {
		return // a page is wanted at once, see evict_ahead.go
	}
	for !s.e.pool.charge(cost) {
		if !s.e.pool.chillWarm() {
			return
		}
	}
	if !s.e.ghosts.grow(s.ghostPlace(), s.sums.Ghosts, s.sums.Ghosts+cost) {
		s.e.pool.refund(cost)
		return
	}
	s.ghosts.sets = ghostTable(&s.e.ghosts, s.number*s.e.ghostReach(), n+more)
	s.sums.Ghosts += cost
}

// ghostPlace is where the shard's ghosts begin.
func (s *shard) ghostPlace() uint64 { return uint64(s.number * s.e.ghostReach() * ghostSetSize) }

// dropGhosts forgets all, and gives the memory back.
func (s *shard) dropGhosts() {
	s.e.ghosts.shrink(s.ghostPlace(), s.sums.Ghosts, 0)
	s.e.pool.refund(s.sums.Ghosts)
	s.sums.Ghosts = 0
	s.ghosts = ghosts{}
}

// ghostReach is how many sets a shard can have: one for each bytesPerSet of its addresses.
func (e *Engine) ghostReach() int {
	const bytesPerSet = 256
	return max(minGhostSets, len(e.cells.mem)/len(e.shards)/bytesPerSet)
}
