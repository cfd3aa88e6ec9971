package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// pending is an entry that was delivered to a consumer and not acknowledged. The entry itself may be gone.
type pending struct {
	id        ID
	consumer  uint32
	delivered int64 // unix milliseconds
	count     uint64
}

// What the ordered map has of a pending entry: the consumer, when it was delivered, relative to the base,
// and how often, as varints.
const maxPending = 3 * binary.MaxVarintLen64

func (b *big) appendPending(dst []byte, p *pending) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.consumer))
	dst = binary.AppendVarint(dst, p.delivered-b.base())
	return binary.AppendUvarint(dst, p.count)
}

func (b *big) pendingAt(id ID, value []byte) pending {
	r := reader{rest: value}
	return pending{id, uint32(r.uvarint()), b.base() + r.varint(), r.uvarint()}
}

// deliveredIn is when a pending entry was delivered, relative to the base.
func deliveredIn(value []byte) int64 {
	_, n := binary.Uvarint(value)
	at, _ := binary.Varint(value[n:])
	return at
}

// pendingID is the ID of the pending entry of a group that a cursor stands at.
func pendingID(c *shape.Cursor) ID {
	var key mapKey
	return keyID(c.AppendKey(key[:0])[groupKeyLen:])
}

// pending returns what is pending in a group under an ID.
func (b *big) pending(g *group, id ID) (p pending, found bool) {
	m := b.keys()
	var key mapKey
	value, found := m.Get(key.pending(g.number, id))
	if !found {
		return p, false
	}
	return b.pendingAt(id, value), true
}

// setPending is deliver.
func (b *big) setPending(g *group, p *pending) error {
	_, err := b.deliver(g, p)
	return err
}

// deliver stores that an entry is pending, and reports whether its consumer had it not. After an error
// nothing has changed.
func (b *big) deliver(g *group, p *pending) (gained bool, err error) {
	m := b.keys()
	var key, mine mapKey
	var value, was [maxPending]byte
	owed := mine.owed(g.number, p.consumer, p.id)
	_, had, err := m.SwapAt(&b.spare.owed, owed, nil, nil)
	if err != nil {
		return false, err
	}
	gained = !had
	old, there, err := m.SwapAt(&b.spare.pending, key.pending(g.number, p.id), b.appendPending(value[:0], p), was[:0])
	if err != nil {
		if gained {
			m.Delete(owed)
		}
		return false, err
	}
	switch {
	case !there:
		b.tally(g.number, p.consumer, 1, 1)
		g.pending++
	case gained:
		before := b.pendingAt(p.id, old)
		m.Delete(mine.owed(g.number, before.consumer, p.id))
		b.tally(g.number, before.consumer, 0, -1)
		b.tally(g.number, p.consumer, 0, 1)
	default:
		b.tally(g.number, p.consumer, 0, 0)
	}
	b.more.oldest = min(b.more.oldest, p.delivered-b.base())
	g.oldest = min(g.oldest, p.delivered)
	return gained, nil
}

// ack removes what is pending under an ID and reports whether there was anything.
func (b *big) ack(g *group, id ID) bool {
	m := b.keys()
	var key mapKey
	var value [maxPending]byte
	old, was := m.TakeAt(markPending, key.pending(g.number, id), value[:0])
	if !was {
		return false
	}
	p := b.pendingAt(id, old)
	m.TakeAt(markOwed, key.owed(g.number, p.consumer, id), nil)
	b.tally(g.number, p.consumer, -1, -1)
	g.pending--
	return true
}

// tally counts what is pending more in a group, and for one of its consumers. The records get to know it
// when another one is counted, or by flush: most commands are about one consumer.
func (b *big) tally(group, consumer uint32, inGroup, owed int) {
	if b.more.group != group {
		b.flush()
		b.more.group, b.more.oldest = group, undelivered
	}
	if b.more.consumer != consumer {
		b.flushOwed()
		b.more.consumer = consumer
	}
	b.more.inGroup += inGroup
	b.more.owed += owed
}

func (b *big) flush() {
	if b.more.group == 0 {
		return
	}
	if b.more.inGroup != 0 || b.more.oldest != undelivered {
		r := b.groupRecord(b.more.group)
		r.addPending(b.more.inGroup)
		r.setOldest(min(r.oldest(), b.more.oldest))
	}
	b.flushOwed()
	b.more = counted{}
}

func (b *big) flushOwed() {
	if b.more.owed != 0 {
		b.consumerRecord(b.more.group, b.more.consumer).addPending(b.more.owed)
		b.more.owed = 0
	}
}

// setOldest notes that nothing pending in a group was delivered before a time. It is no change that anybody
// else could see, and receivers have their own.
func (b *big) setOldest(g *group, at int64) {
	b.flush()
	if g.oldest = at; at != undelivered {
		at -= b.base()
	}
	b.groupRecord(g.number).setOldest(at)
}

// eachPending calls f for what is pending in a group, in the order of IDs from one on, until f returns
// false. c is nil, or only what is pending for it counts.
func (b *big) eachPending(g *group, c *consumer, from ID, f func(p pending) bool) {
	m := b.keys()
	var key, at, prefix mapKey
	if c == nil {
		of := prefix.of(keyPending, g.number)
		for x := m.Seek(key.pending(g.number, from)); x.HasPrefix(of); x.Next() {
			if !f(b.pendingAt(keyID(x.AppendKey(at[:0])[len(of):]), x.Value())) {
				return
			}
		}
		return
	}
	of := binary.BigEndian.AppendUint32(prefix.of(keyOwed, g.number), c.number)
	for x := m.Seek(key.owed(g.number, c.number, from)); x.HasPrefix(of); x.Next() {
		p, _ := b.pending(g, keyID(x.AppendKey(at[:0])[len(of):]))
		if !f(p) {
			return
		}
	}
}

// pendingEnds returns the least and the greatest ID that is pending in a group.
func (b *big) pendingEnds(g *group) (first, last ID, found bool) {
	m := b.keys()
	var key, at, prefix mapKey
	of := prefix.of(keyPending, g.number)
	x := m.Seek(of)
	if !x.HasPrefix(of) {
		return first, last, false
	}
	first = keyID(x.AppendKey(at[:0])[len(of):])
	x = m.SeekBack(key.pending(g.number, maxID))
	return first, keyID(x.AppendKey(at[:0])[len(of):]), true
}
