package broker

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// Message is a published message, shared by all receivers. It never changes until it is released.
type Message struct {
	pubsub.Message
	uses atomic.Int64
	room *room
	lost *atomic.Uint64 // the broker's count of those that found a queue full
	size int64          // charged
}

// messageMemory is what a message takes beside its frame, in bytes.
const messageMemory = 192

// Frames have one of these sizes, powers of two, or exactly the size that they need if that is more.
const (
	minFrame = 7  // 128 bytes
	maxFrame = 14 // 16 KiB
)

// free has messages without uses, by the size of their frames. Those with longer ones are left to the
// garbage collector.
var free [maxFrame - minFrame + 1]sync.Pool

// frameOf returns how many bytes a frame has that needs so many, and where its message is kept while it
// has no uses: nil for a long one.
func frameOf(need int) (size int, kept *sync.Pool) {
	power := max(bits.Len(uint(need-1)), minFrame)
	if power > maxFrame {
		return need, nil
	}
	return 1 << power, &free[power-minFrame]
}

// newMessage returns a message with one use, or nil if there is no memory for it. It copies channel and
// payload.
func (b *Broker) newMessage(kind pubsub.Kind, channel, payload []byte) *Message {
	frame, kept := frameOf(pubsub.FrameSize(channel, payload))
	size := int64(frame + messageMemory)
	if !b.room.take(size) {
		return nil
	}
	var m *Message
	if kept != nil {
		m, _ = kept.Get().(*Message)
	}
	if m == nil {
		m = &Message{}
		m.Frame = make([]byte, 0, frame)
	}
	m.Frame = pubsub.AppendMessage(m.Frame[:0], kind, channel, payload)
	end := len(m.Frame) - len("\r\n")
	m.Payload = m.Frame[end-len(payload) : end]
	header := end - len(payload) - bulkHeader(len(payload)) - len("\r\n")
	m.Channel = m.Frame[header-len(channel) : header]
	m.Kind, m.room, m.lost, m.size = kind, &b.room, &b.lost, size
	m.uses.Store(1)
	return m
}

// bulkHeader returns how many bytes stand before a bulk string of n bytes.
func bulkHeader(n int) int {
	size := len("$0\r\n")
	for ; n > 9; n /= 10 {
		size++
	}
	return size
}

// Release ends a use. The caller must not touch the message afterwards.
func (m *Message) Release() {
	if m.uses.Add(-1) > 0 {
		return
	}
	m.room.give(m.size)
	m.room = nil
	if _, kept := frameOf(cap(m.Frame)); kept != nil {
		kept.Put(m)
	}
}

// room is the memory that messages take, charged in chunks: a message costs an addition.
type room struct {
	charge  func(n int64) bool
	refund  func(n int64)
	used    atomic.Int64
	granted atomic.Int64
	mu      sync.Mutex // of changes of granted
}

// roomChunk is how many bytes are charged at once.
const roomChunk = 256 << 10

func (r *room) take(n int64) bool {
	if used := r.used.Add(n); used <= r.granted.Load() || r.grow(used) {
		return true
	}
	r.used.Add(-n)
	return false
}

func (r *room) grow(used int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	missing := used - r.granted.Load()
	if missing <= 0 {
		return true
	}
	more := max(missing, roomChunk)
	if !r.charge(more) {
		return false
	}
	r.granted.Add(more)
	return true
}

func (r *room) give(n int64) {
	used := r.used.Add(-n)
	if r.granted.Load()-used <= 3*roomChunk {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if spare := r.granted.Load() - r.used.Load() - roomChunk; spare > 0 {
		r.granted.Add(-spare)
		r.refund(spare)
	}
}
