package node

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// Keyspace notifications. The owner of a key publishes them to those who listen at this node: all proxies
// tell all nodes who listens to such channels, as they do for patterns.
//
//	handler, expiry, eviction ─▶ note ─▶ queue of some partitions ─▶ goroutine ─▶ broker
//	           (the shard is locked)
//
// So what happens to a key is published in its order, and nobody who changes a key waits for those who
// listen: a goroutine publishes. Copies and moves change no key, and note nothing. While nobody may
// listen, a change costs a comparison.

const (
	eventQueues = 64
	// eventMemory is how many bytes of events wait to be published, at most. Further ones are lost, and
	// counted.
	eventMemory = 4 << 20
	// eventBlock is how many bytes of events a queue takes at once.
	eventBlock = 32 << 10
	// eventHead is what an event takes beside its name and its key.
	eventHead = 6
)

// events are those of a node.
type events struct {
	node *Node
	// classes are the keyevent.Class of what is published. 0: nothing.
	classes atomic.Uint32
	queues  [eventQueues]eventQueue
	waiting atomic.Int64  // bytes in blocks of the queues
	wake    chan struct{} // has room for one
	lost    atomic.Uint64

	set     atomic.Uint32 // the classes of the settings
	mu      sync.Mutex    // of the rest
	charged bool          // the memory of what waits
	late    atomic.Bool   // review has more to do
}

// isLate reports whether review found no memory, or too much in its queues, and is to be called again.
func (ev *events) isLate() bool { return ev.late.Load() }

// eventQueue has the events of some partitions that are not published yet, each as the length of its
// name, the name, the database, the length of the key, and the key.
type eventQueue struct {
	mu     sync.Mutex
	blocks [][]byte
}

// eventBlocks are empty.
var eventBlocks = sync.Pool{New: func() any { return make([]byte, 0, eventBlock) }}

// obey follows the settings and the level of the cluster.
func (ev *events) obey(set keyevent.Class) {
	ev.set.Store(uint32(set))
	ev.review()
}

// review is obey with what is set.
func (ev *events) review() {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	n := ev.node
	classes := keyevent.Class(ev.set.Load()).Active()
	if v := n.view.Load(); v == nil || clusterLevel(v.Table) < ring.EventsLevel {
		classes = 0
	}
	ev.late.Store(false)
	if classes != 0 && !ev.charged {
		if ev.charged = (heapBudget{n}).Charge(eventMemory); !ev.charged {
			classes = 0
			ev.late.Store(true)
		}
	}
	ev.classes.Store(uint32(classes))
	n.engine.AnnounceNew(classes&keyevent.New != 0)
	switch {
	case classes != 0 || !ev.charged:
	case ev.waiting.Load() > 0:
		ev.late.Store(true)
	default:
		ev.charged = false
		heapBudget{n}.Refund(eventMemory)
	}
}

// note queues an event of a key whose partition is locked, if anybody may listen.
func (ev *events) note(class keyevent.Class, event string, database uint8, key []byte) {
	if ev.classes.Load()&uint32(class) == 0 || !ev.node.broker.WantsEvents() {
		return
	}
	size := eventHead + len(event) + len(key)
	q := &ev.queues[ring.PartitionOf(key)%eventQueues]
	q.mu.Lock()
	defer q.mu.Unlock()
	at := len(q.blocks) - 1
	if at < 0 || cap(q.blocks[at])-len(q.blocks[at]) < size {
		room := max(size, eventBlock)
		if ev.waiting.Add(int64(room)) > eventMemory {
			ev.waiting.Add(-int64(room))
			ev.lost.Add(1)
			return
		}
		block := make([]byte, 0, size)
		if room == eventBlock {
			block, _ = eventBlocks.Get().([]byte)
		}
		q.blocks = append(q.blocks, block)
		at++
	}
	b := append(append(append(q.blocks[at], byte(len(event))), event...), database)
	q.blocks[at] = append(binary.LittleEndian.AppendUint32(b, uint32(len(key))), key...)
	select {
	case ev.wake <- struct{}{}:
	default:
	}
}

// ofEngine are the events of the engine.
var ofEngine = [...]struct {
	class keyevent.Class
	name  string
}{
	engine.Expired:         {keyevent.Expired, "expired"},
	engine.Evicted:         {keyevent.Evicted, "evicted"},
	engine.ElementsExpired: {keyevent.Hash, "hexpired"},
	engine.Emptied:         {keyevent.Generic, "del"},
	engine.Created:         {keyevent.New, "new"},
}

// announce is engine.Config.Announce. The engine announces nothing of copies. When a partition moves it is the engine's
// own at one of both nodes until it is sealed (replica.FeedRest), and at the next one from when that has all of it
// (Copies.Own), a moment before it serves. So the view does not matter, and what expires meanwhile is told once.
func (ev *events) announce(section uint16, key []byte, event engine.Event) {
	e := &ofEngine[event]
	ev.note(e.class, e.name, engine.DatabaseOf(section), key)
}

// run publishes what is queued, until the node closes.
func (ev *events) run(ctx context.Context) {
	var scratch []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-ev.wake:
		}
		for i := range ev.queues {
			for _, block := range ev.queues[i].take() {
				scratch = ev.publishAll(scratch, block)
				ev.waiting.Add(-int64(cap(block)))
				if cap(block) == eventBlock {
					eventBlocks.Put(block[:0]) //nolint:staticcheck // a slice's head is allocated once for hundreds of events
				}
			}
		}
	}
}

func (q *eventQueue) take() (blocks [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	blocks, q.blocks = q.blocks, nil
	return blocks
}

// publishAll publishes the events of a block. scratch is memory for it, which it returns.
func (ev *events) publishAll(scratch, block []byte) []byte {
	classes := keyevent.Class(ev.classes.Load())
	for len(block) > 0 {
		event, rest := block[1:1+block[0]], block[1+block[0]:]
		database, end := rest[0], 5+binary.LittleEndian.Uint32(rest[1:])
		key := rest[5:end]
		block = rest[end:]
		if classes&keyevent.Keyspace != 0 {
			scratch = keyevent.AppendKeyspace(scratch[:0], database, key)
			ev.publish(scratch, event)
		}
		if classes&keyevent.Keyevent != 0 {
			scratch = keyevent.AppendKeyevent(scratch[:0], database, string(event))
			ev.publish(scratch, key)
		}
	}
	return scratch
}

// publish publishes one notification. One that no client could publish, because its channel has too long a
// name, is lost, as one without memory is.
func (ev *events) publish(channel, message []byte) {
	b := ev.node.broker
	if len(channel) > pubsub.MaxName || b.Cost(pubsub.Channel, channel) > broker.MaxCost {
		ev.lost.Add(1)
		return
	}
	if _, ok := b.Publish(pubsub.Channel, channel, message, 0); !ok {
		ev.lost.Add(1)
	}
}
