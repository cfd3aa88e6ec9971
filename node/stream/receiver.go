package stream

import (
	"errors"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
)

// Taker decides what becomes of one sender's stream here.
type Taker interface {
	engine.Taker
	Heard()                // the sender has said something, just now
	Void()                 // the sender begins anew: what it feeds is no copy any more
	Reopened()             // the sender goes on, and may not have heard what was refused
	TakeRefused() []uint16 // what it feeds in vain, since the last call, or ever if Reopened was called since
}

// The errors of a Connection. Each ends it, for nothing that follows on it can be trusted.
var (
	ErrMalformed = errors.New("cannot go on with stream: malformed")
	ErrNotOpen   = errors.New("cannot go on with stream: another connection has it, or none was opened here")
	ErrGap       = errors.New("cannot go on with stream: a batch is missing")
)

// streamMemory is for how long a stream without a connection is remembered. Its sender gives it up
// earlier.
const streamMemory = 2 * replica.AwayLimit

// Receivers are the streams that a node receives. They are used on all loops.
type Receivers struct {
	cfg *Config
	// taker returns the Taker of a sender's stream.
	taker func(source string) Taker

	mu     sync.Mutex // before any receiver's
	from   map[string]*receiver
	pruned time.Duration // when the forgotten ones were removed, by the node's clock
}

const (
	// loopMost is the longest batch, in bytes, that a loop applies at once. A batch of at most
	// replica.PayloadMost is longer only if a unit of effects is, which is at most 512 KiB.
	loopMost = 64 << 10
	// loopDeltas is how many bytes of it may be long deltas: of elements of ten bytes that is half
	// a millisecond's work. A whole batch of them took 6 ms.
	loopDeltas = 4 << 10
)

// IsLong reports whether these effects would keep a loop for too long. Connection.Effects may then
// be called in a goroutine.
func IsLong(effects []byte) bool {
	return len(effects) > loopMost || len(effects) > loopDeltas && engine.LongDeltas(effects) > loopDeltas
}

// receiver is the stream of one sender, over all its connections.
type receiver struct {
	cfg *Config

	mu      sync.Mutex  // held while a batch is applied; connections of different loops may contend for it, and goroutines
	conn    *Connection // the one that may go on; nil: none
	taker   Taker
	inbound replica.Inbound
	values  map[uint16]*incoming // that are not whole yet, by partition
	lacks   []byte               // keys that the next answer asks for
	ended   time.Duration        // when conn was closed, by the node's clock
	told    time.Duration        // when the sender was last told that this node is strained, by that clock
}

// Connection is one connection of a stream. It belongs to one loop.
type Connection struct{ of *receiver }

// NewReceivers returns the streams of a node, none yet. taker returns who decides about the stream
// of the sender of that name; it is called once for each. The caller does not change cfg any more.
func NewReceivers(cfg *Config, taker func(source string) Taker) *Receivers {
	return &Receivers{cfg: cfg, taker: taker, from: make(map[string]*receiver)}
}

// Open begins a connection of the stream that the named sender sends in this generation, which is
// not 0. From then on no older connection of the stream is listened to. last is the last batch that
// was applied, 0 in a new generation.
func (all *Receivers) Open(source string, generation uint64) (c *Connection, last uint64) {
	r := all.receiver(source)
	r.mu.Lock()
	defer r.mu.Unlock()
	c = &Connection{of: r}
	r.conn = c
	r.taker = all.taker(source) // the one of before may have been forgotten meanwhile
	last, resumed := r.inbound.Open(generation)
	if resumed {
		r.taker.Reopened()
	} else {
		r.dropValues()
		r.taker.Void()
	}
	r.taker.Heard()
	return c, last
}

// receiver returns the stream of a sender. Now and then it forgets the streams that are over.
func (all *Receivers) receiver(source string) *receiver {
	now := all.cfg.Monotonic()
	all.mu.Lock()
	defer all.mu.Unlock()
	if now-all.pruned > streamMemory {
		all.pruned = now
		for other, r := range all.from {
			if other != source && r.over(now) {
				delete(all.from, other)
			}
		}
	}
	r := all.from[source]
	if r == nil {
		r = &receiver{cfg: all.cfg}
		all.from[source] = r
	}
	return r
}

// Applied returns the last batch that was applied of a sender's stream, for the tests of package
// node.
func (all *Receivers) Applied(source string) uint64 {
	r := all.receiver(source)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inbound.Last()
}

// Drop gives up the large values that are on their way in.
func (all *Receivers) Drop() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, r := range all.from {
		r.mu.Lock()
		r.dropValues()
		r.mu.Unlock()
	}
}

// over reports whether the stream has had no connection for streamMemory. It then drops its values.
func (r *receiver) over(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil || now-r.ended < streamMemory {
		return false
	}
	r.dropValues()
	return true
}

// Close notes that the connection is closed. Nothing happens to a Connection that is nil.
func (c *Connection) Close() {
	if c == nil {
		return
	}
	r := c.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == c {
		r.conn, r.ended = nil, r.cfg.Monotonic()
	}
}

// Batch is what every batch says of itself.
type Batch struct {
	Seq  uint64 // its number
	Sent int64  // when it was sent, by the sender's clock, in unix milliseconds
	Now  int64  // when it came, by this node's clock, in unix milliseconds
}

// shift is what is added to an expiry of the batch, so that a key lives as long here as there.
func (b *Batch) shift() int64 { return b.Now - b.Sent }

// Effects applies a batch of effects, unless it was applied before, and appends the answer to dst.
// The effects are copied. An error of kind engine.UnknownEffect is about a newer node. A Connection
// that is nil is not open.
func (c *Connection) Effects(dst []byte, b Batch, effects []byte) ([]byte, error) {
	if c == nil {
		return dst, ErrNotOpen
	}
	malformed := engine.CheckEffects(effects, c.of.cfg.Admits)
	if unknown := (engine.UnknownEffect{}); errors.As(malformed, &unknown) {
		return dst, unknown
	}
	return c.take(dst, b, func(r *receiver) bool {
		return malformed == nil && r.cfg.Engine.Apply(effects, b.shift(), b.Now, r) == nil
	})
}

// take applies a batch in its turn and appends the answer: how far the stream has come.
func (c *Connection) take(dst []byte, b Batch, apply func(r *receiver) bool) ([]byte, error) {
	if c == nil {
		return dst, ErrNotOpen
	}
	r := c.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != c {
		return dst, ErrNotOpen
	}
	switch r.inbound.Judge(b.Seq) {
	case replica.Gap:
		return dst, ErrGap
	case replica.Next:
		if !apply(r) {
			return dst, ErrMalformed
		}
		r.inbound.Applied()
	case replica.Repeated:
	}
	r.taker.Heard()
	answer := replica.Answer{Seq: r.inbound.Last(), Refused: r.taker.TakeRefused(), Lacks: r.lacks, Strained: r.strained()}
	r.lacks = r.lacks[:0]
	return answer.Append(dst), nil
}

// strained reports whether the answer says that this node is strained. That is not said more often
// than senders need to know it.
func (r *receiver) strained() bool {
	now := r.cfg.Monotonic()
	if now-r.told < toldMemory/3 || !r.cfg.TellsStrain() || !r.cfg.Strained() {
		return false
	}
	r.told = now
	return true
}

// Lacks implements engine.Lacker: the next answer asks for the key, if there is memory for it. If
// the answer is lost, or there is none, the next change of the value asks again.
func (r *receiver) Lacks(section uint16, key []byte) {
	if !r.cfg.Engine.IsTight() {
		r.lacks = replica.AppendLack(r.lacks, section, key)
	}
}

// Admits implements engine.Taker.
func (r *receiver) Admits(p uint16) bool { return r.taker.Admits(p) }

// Marked implements engine.Taker. A value that was on its way before does not count any more.
func (r *receiver) Marked(p uint16, m engine.Mark) {
	r.dropValue(p)
	r.taker.Marked(p, m)
}
