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

// SetPolicy changes that for whatever needs memory from now on. Nothing is evicted by the change
// itself.
func (e *Engine) SetPolicy(p Policy) { e.pool.policy.Store(uint32(p)) }
