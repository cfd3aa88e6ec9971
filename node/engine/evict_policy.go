package engine

// Policy says what happens when memory is full.
type Policy uint8

const (
	AllKeys     Policy = iota // any key may be evicted, those not used for long first
	VolatileTTL               // only keys that expire, those that expire soonest first
	NoEviction                // nothing is evicted: ErrMemory
)

// Policy is what happens now when memory is full.
func (e *Engine) Policy() Policy { return Policy(e.pool.policy.Load()) }

// SetPolicy changes that for whatever needs memory from now on. Nothing is evicted by the change itself.
func (e *Engine) SetPolicy(p Policy) { e.pool.policy.Store(uint32(p)) }

// upkeepShare is the part of memory that new values may not have where not every key may be evicted. When SET is refused,
// connections are still served and EXPIRE works, although a first expiry may take a larger cell.
const upkeepShare = 64

// limit is how many bytes may be used, for upkeep or otherwise.
func (p *pool) limit(upkeep bool) int64 {
	limit := p.max.Load()
	if !upkeep && Policy(p.policy.Load()) != AllKeys {
		limit -= limit / upkeepShare
	}
	return limit
}
