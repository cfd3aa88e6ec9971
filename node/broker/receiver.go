package broker

import (
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
)

// Receiver takes the messages for the subscribers of one loop, here or in a proxy.
type Receiver struct {
	Origin   Origin // set before Listen
	standsIn bool   // it only counts, see standin.go

	limit int64
	wake  func()
	lost  atomic.Uint64 // messages that found the queue full, or could not be handed over

	mu    sync.Mutex
	queue []*Message // from head on
	head  int
	bytes int64  // that the queue's messages take
	count uint64 // of messages that were queued, ever
	armed bool   // wake was called, and Take has not emptied the queue since

	closed atomic.Bool // changed under mu

	// marks has the number of the last message of each stripe that was queued, so that it is queued
	// once. Guarded by the stripe's lock.
	marks [stripes]uint64

	// topics are those that the receiver listens to. They belong to whoever calls Listen.
	topics [pubsub.Kinds]map[string]int
}

// NewReceiver returns a receiver whose messages in the queue take limit bytes of memory at most. wake is called when
// there are messages, in the middle of Publish: it must not block, nor call the broker.
func NewReceiver(limit int64, wake func()) *Receiver {
	return &Receiver{limit: limit, wake: wake}
}

// push queues a message.
func (rc *Receiver) push(m *Message) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	switch {
	case rc.closed.Load():
		return
	case rc.bytes+m.size > rc.limit && rc.bytes > 0:
		rc.lost.Add(1)
		m.lost.Add(1)
		return
	}
	m.uses.Add(1)
	if rc.head > len(rc.queue)/2 {
		n := copy(rc.queue, rc.queue[rc.head:])
		clear(rc.queue[n:])
		rc.queue, rc.head = rc.queue[:n], 0
	}
	rc.queue = append(rc.queue, m)
	rc.bytes += m.size
	rc.count++
	if !rc.armed {
		rc.armed = true
		rc.wake()
	}
}

// lose counts a message that the receiver has not got, and has its loop say so.
func (rc *Receiver) lose() {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if rc.closed.Load() {
		return
	}
	rc.lost.Add(1)
	if !rc.armed {
		rc.armed = true
		rc.wake()
	}
}

// Take appends messages from the front of the queue to dst, until they take so many bytes of memory: the
// caller releases them. more says that some are left; otherwise wake is called again for what comes later.
func (rc *Receiver) Take(dst []*Message, bytes int) (list []*Message, more bool) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for bytes > 0 && rc.head < len(rc.queue) {
		m := rc.queue[rc.head]
		rc.queue[rc.head] = nil
		rc.head++
		bytes -= int(m.size)
		rc.bytes -= m.size
		dst = append(dst, m)
	}
	if rc.head < len(rc.queue) {
		return dst, true
	}
	rc.queue, rc.head, rc.armed = rc.queue[:0], 0, false
	if cap(rc.queue) > keepQueue {
		rc.queue = nil
	}
	return dst, false
}

// keepQueue is the longest list that an empty queue keeps, in messages.
const keepQueue = 1024

// Queued returns how many messages were queued until now.
func (rc *Receiver) Queued() uint64 {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return rc.count
}

// Taken returns how many of the messages that were ever queued are not in the queue any more.
func (rc *Receiver) Taken() uint64 {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return rc.count - uint64(len(rc.queue)-rc.head)
}

// Lost returns how many messages found the queue full, or could not be handed over.
func (rc *Receiver) Lost() uint64 { return rc.lost.Load() }

// Count returns how many subscribers of a topic the receiver has said that it has.
func (rc *Receiver) Count(kind pubsub.Kind, name []byte) int { return rc.topics[kind][string(name)] }

// Close makes the receiver take no more messages, and its subscribers count no more. Leave is to follow.
func (rc *Receiver) Close() {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.closed.Store(true)
	for _, m := range rc.queue[rc.head:] {
		m.Release()
	}
	rc.queue, rc.head, rc.bytes = nil, 0, 0
}
