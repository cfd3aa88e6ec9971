package sim

// LRU evicts the key whose last read is longest ago.
type LRU struct {
	costs []int32
	room  int64 // free bytes
	has   []bool
	order queues
	head  uint32
}

// NewLRU makes a cache of room bytes in which each key takes its costs.
func NewLRU(costs []int32, room int64) *LRU {
	n := len(costs)
	return &LRU{costs: costs, room: room, has: make([]bool, n), order: newQueues(n, 1), head: uint32(n)}
}

func (c *LRU) Read(key uint32) bool {
	if c.has[key] {
		c.order.remove(key)
		c.order.push(c.head, key)
		return true
	}
	cost := int64(c.costs[key])
	for c.room < cost {
		victim := c.order.oldest(c.head)
		if victim == c.head {
			return false // larger than the whole cache
		}
		c.order.remove(victim)
		c.has[victim] = false
		c.room += int64(c.costs[victim])
	}
	c.room -= cost
	c.has[key] = true
	c.order.push(c.head, key)
	return false
}
