package sim

// S3FIFO is Algorithm 1 of "FIFO Queues are All You Need for Cache Eviction" (Yang and others, SOSP
// '23), by bytes: a small queue of a tenth of the room, which a key leaves for the main queue if it
// was read more than once there, a main queue in which each read, up to three, is worth another
// round, and a ghost of as many keys as the main queue has. The count of reads begins at 0 in the
// main queue, as in the authors' libCacheSim.
type S3FIFO struct {
	costs       []int32
	room, limit int64 // of small
	place       []place
	reads       []uint8 // since the key came to its queue or the hand met it, up to maxReads
	order       queues
	small, main queue
	ghost       ghost
}

type place uint8

const (
	nowhere place = iota
	inSmall
	inMain
)

const maxReads = 3

type queue struct {
	head  uint32
	keys  int
	bytes int64
}

// NewS3FIFO makes a cache of room bytes in which each key takes its costs.
func NewS3FIFO(costs []int32, room int64) *S3FIFO {
	n := len(costs)
	return &S3FIFO{
		costs: costs, room: room, limit: room / 10,
		place: make([]place, n), reads: make([]uint8, n), order: newQueues(n, 2),
		small: queue{head: uint32(n)}, main: queue{head: uint32(n) + 1},
		ghost: ghost{added: make([]uint32, n)},
	}
}

func (c *S3FIFO) Read(key uint32) bool {
	if c.place[key] != nowhere {
		c.reads[key] = min(c.reads[key]+1, maxReads)
		return true
	}
	cost := int64(c.costs[key])
	if cost > c.limit {
		return false // it would evict everything else from small
	}
	for c.small.bytes+c.main.bytes+cost > c.room {
		if c.small.bytes > c.limit || c.main.keys == 0 {
			c.evictSmall()
		} else {
			c.evictMain()
		}
	}
	if c.ghost.take(key) {
		c.push(&c.main, inMain, key)
	} else {
		c.push(&c.small, inSmall, key)
	}
	return false
}

func (c *S3FIFO) push(q *queue, p place, key uint32) {
	c.place[key], c.reads[key] = p, 0
	c.order.push(q.head, key)
	q.keys++
	q.bytes += int64(c.costs[key])
}

// pop removes and returns the oldest key.
func (c *S3FIFO) pop(q *queue) uint32 {
	key := c.order.oldest(q.head)
	c.order.remove(key)
	c.place[key] = nowhere
	q.keys--
	q.bytes -= int64(c.costs[key])
	return key
}

func (c *S3FIFO) evictSmall() {
	for c.small.keys > 0 {
		if key := c.pop(&c.small); c.reads[key] > 1 {
			c.push(&c.main, inMain, key)
			if c.main.bytes > c.room-c.limit {
				c.evictMain()
				return
			}
		} else {
			c.ghost.add(key, c.main.keys)
			return
		}
	}
}

func (c *S3FIFO) evictMain() {
	for c.main.keys > 0 {
		key := c.pop(&c.main)
		if c.reads[key] == 0 {
			return
		}
		reads := c.reads[key] - 1
		c.push(&c.main, inMain, key)
		c.reads[key] = reads
	}
}

// ghost remembers the keys that were added last.
type ghost struct {
	added []uint32 // when each key was added, 0 if it is not there
	queue []ghostEntry
	keys  int
	now   uint32
}

type ghostEntry struct{ key, added uint32 }

// add makes key the newest of at most n keys, or of one if n is less.
func (g *ghost) add(key uint32, n int) {
	g.now++
	g.added[key] = g.now
	g.queue = append(g.queue, ghostEntry{key, g.now})
	for g.keys++; g.keys > max(1, n); {
		oldest := g.queue[0]
		g.queue = g.queue[1:]
		if g.added[oldest.key] == oldest.added {
			g.take(oldest.key)
		}
	}
}

// take reports whether key is there, and removes it.
func (g *ghost) take(key uint32) bool {
	if g.added[key] == 0 {
		return false
	}
	g.added[key] = 0
	g.keys--
	return true
}
