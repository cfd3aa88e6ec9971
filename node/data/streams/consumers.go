package streams

import (
	"bytes"
	"encoding/binary"
	"math"
)

// never is the time of what has never been.
const never = -1

// consumer is a consumer of a group.
type consumer struct {
	name    []byte // a view of the value, or what the caller has looked for
	number  uint32 // tells it from all consumers that the group ever had
	pending int
	seen    int64 // when it asked last, unix milliseconds
	active  int64 // when it got an entry last, unix milliseconds, or never
}

// consumerRecord is what the ordered map has of a consumer. Times are relative to the value's base.
//
//	pending │ seen │ active │ name
//	   8       8       8
type consumerRecord []byte

const (
	consumerSeen   = 8
	consumerActive = consumerSeen + 8
	consumerName   = consumerActive + 8

	neverActive = math.MinInt64
)

func (r consumerRecord) addPending(n int) { addUint64(r, n) }

func (r consumerRecord) setTimes(seen, active int64) {
	binary.LittleEndian.PutUint64(r[consumerSeen:], uint64(seen))
	binary.LittleEndian.PutUint64(r[consumerActive:], uint64(active))
}

// base is the time to which times in the value are relative.
func (b *big) base() int64 {
	if b.pin != nil {
		return b.pin.Base()
	}
	return b.v.Base()
}

// relative is a consumer's time of being active, relative to the base.
func (b *big) relative(active int64) int64 {
	if active == never {
		return neverActive
	}
	return active - b.base()
}

func (b *big) consumerAt(group, number uint32, r consumerRecord) consumer {
	c := consumer{
		name: r[consumerName:], number: number, pending: int(binary.LittleEndian.Uint64(r)),
		seen: b.base() + int64(binary.LittleEndian.Uint64(r[consumerSeen:])), active: never,
	}
	if at := int64(binary.LittleEndian.Uint64(r[consumerActive:])); at != neverActive {
		c.active = b.base() + at
	}
	if b.more.group == group && b.more.consumer == number {
		c.pending += b.more.owed
	}
	return c
}

// consumerRecord is the record of a consumer, to be changed; nil if there is none.
func (b *big) consumerRecord(group, number uint32) consumerRecord {
	m := b.keys()
	var key mapKey
	r, _ := m.EditAt(markConsumer, key.consumer(group, number))
	return r
}

// consumerOf returns the consumer of a group with a number: of a pending entry.
func (b *big) consumerOf(g *group, number uint32) (c consumer, found bool) {
	m := b.keys()
	var key mapKey
	r, found := m.GetAt(markConsumer, key.consumer(g.number, number))
	if !found {
		return c, false
	}
	return b.consumerAt(g.number, number, r), true
}

// consumer returns the consumer of a group with a name.
func (b *big) consumer(g *group, name []byte) (c consumer, found bool) {
	if len(name) > maxName {
		return c, false
	}
	m := b.keys()
	var key nameKey
	value, found := m.GetAt(markOf, key.consumer(g.number, name))
	if !found {
		return c, false
	}
	c, found = b.consumerOf(g, binary.LittleEndian.Uint32(value))
	c.name = name
	return c, found
}

// consumerName returns the name of the consumer with a number: a view.
func (b *big) consumerName(g *group, number uint32) []byte {
	c, _ := b.consumerOf(g, number)
	return c.name
}

// eachConsumer calls f for the consumers of a group in the order of their names, those behind after, until f
// returns false. nil: from the first one on.
func (b *big) eachConsumer(g *group, after []byte, f func(c *consumer) bool) {
	m := b.keys()
	var key nameKey
	var of mapKey
	from := key.consumer(g.number, after[:min(len(after), maxName)])
	for at := m.Seek(from); at.HasPrefix(of.of(keyOf, g.number)); at.Next() {
		c, _ := b.consumerOf(g, binary.LittleEndian.Uint32(at.Value()))
		if after != nil && bytes.Equal(c.name, after) {
			continue
		}
		if !f(&c) {
			return
		}
	}
}

// createConsumer makes a consumer; number is 0 if it gets the next one. Times are relative to the base.
// After an error nothing has changed.
func (b *big) createConsumer(g *group, number uint32, name []byte, seen, active int64) (uint32, error) {
	next := max(1, b.groupRecord(g.number).next())
	if number == 0 {
		number = next
	}
	switch {
	case len(name) > maxName:
		return 0, errLongName
	case number == math.MaxUint32:
		return 0, errNumbers
	}
	var record [consumerName + maxName]byte
	r := consumerRecord(record[:consumerName+copy(record[consumerName:], name)])
	r.setTimes(seen, active)
	m := b.keys()
	var key mapKey
	if _, err := m.Set(key.consumer(g.number, number), r); err != nil {
		return 0, err
	}
	var named nameKey
	var value [4]byte
	binary.LittleEndian.PutUint32(value[:], number)
	if _, err := m.Set(named.consumer(g.number, name), value[:]); err != nil {
		m.Delete(key.consumer(g.number, number))
		return 0, err
	}
	of := b.groupRecord(g.number)
	of.setNext(max(next, number+1))
	of.addConsumers(1)
	g.consumers++
	return number, nil
}

// deleteConsumer removes a consumer for whom nothing is pending.
func (b *big) deleteConsumer(g *group, c *consumer) {
	b.flush()
	m := b.keys()
	var named nameKey
	m.Delete(named.consumer(g.number, b.consumerName(g, c.number))) // c may have a view from before other changes
	var key mapKey
	m.Delete(key.consumer(g.number, c.number))
	b.groupRecord(g.number).addConsumers(-1)
	g.consumers--
}
