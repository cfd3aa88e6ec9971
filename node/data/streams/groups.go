package streams

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// readUnknown says that nobody knows how many entries a group has read.
const readUnknown = -1

// group is a consumer group of a stream. Functions that change a group or its parts take a pointer, and keep
// the fields up to date.
type group struct {
	name      []byte // a view of the value, or what the caller has looked for
	number    uint32 // tells it from all groups that the stream ever had
	last      ID     // the entry that was delivered last
	read      int64  // entries that it has read, or readUnknown
	pending   int
	consumers int
	next      uint32 // consumer
	oldest    int64  // nothing pending was delivered before; unix milliseconds, or undelivered
}

// undelivered is later than any delivery: the oldest of a group that never had anything pending.
const undelivered = math.MaxInt64

var (
	// errLongName is the error for the name of a group or a consumer that is longer than maxName bytes.
	errLongName = errors.New("the name of a consumer group or a consumer is longer than 512 bytes")
	// errNumbers is the error when a stream has had as many groups, or a group as many consumers, as it may.
	errNumbers = errors.New("this stream has had too many consumer groups or consumers")
)

// maxName is how long the name of a group or of a consumer may be, in bytes.
const maxName = 512

// groupRecord is what the ordered map has of a group.
//
//	last │ read │ pending │ consumers │ next consumer │ gone │ oldest │ name
//	 16     8        8          4             4           1       8
//
// Nothing pending in the group was delivered before the oldest, a time relative to the value's base. What is
// acknowledged leaves it as it is, and a scan for what is idle corrects it (idleScan).
//
// A group that was destroyed is gone, until all its keys are: then the next consumer is the next group that
// is gone.
type groupRecord []byte

const (
	groupRead      = rawIDLen
	groupPending   = groupRead + 8
	groupConsumers = groupPending + 8
	groupNext      = groupConsumers + 4
	groupGone      = groupNext + 4
	groupOldest    = groupGone + 1
	groupName      = groupOldest + 8
)

func (r groupRecord) isGone() bool     { return r[groupGone] != 0 }
func (r groupRecord) next() uint32     { return binary.LittleEndian.Uint32(r[groupNext:]) }
func (r groupRecord) setNext(n uint32) { binary.LittleEndian.PutUint32(r[groupNext:], n) }
func (r groupRecord) addPending(n int) { addUint64(r[groupPending:], n) }
func (r groupRecord) setLast(last ID)  { putRawID(r, last) }
func (r groupRecord) setRead(n int64)  { binary.LittleEndian.PutUint64(r[groupRead:], uint64(n)) }
func (r groupRecord) oldest() int64    { return int64(binary.LittleEndian.Uint64(r[groupOldest:])) }
func (r groupRecord) setOldest(at int64) {
	binary.LittleEndian.PutUint64(r[groupOldest:], uint64(at))
}
func (r groupRecord) addConsumers(n int) {
	at := r[groupConsumers:]
	binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)+uint32(n))
}

func addUint64(b []byte, n int) {
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+uint64(n))
}

// groupOf is the group with a number and a record.
func (b *big) groupOf(number uint32, r groupRecord) group {
	g := group{
		name: r[groupName:], number: number, last: rawID(r), read: int64(binary.LittleEndian.Uint64(r[groupRead:])),
		pending: int(binary.LittleEndian.Uint64(r[groupPending:])), consumers: int(binary.LittleEndian.Uint32(r[groupConsumers:])), next: r.next(),
	}
	oldest := r.oldest()
	if b.more.group == number {
		g.pending += b.more.inGroup
		oldest = min(oldest, b.more.oldest)
	}
	if g.oldest = undelivered; oldest != undelivered {
		g.oldest = b.base() + oldest
	}
	return g
}

// groupRecord is the record of a group, to be changed; nil if there is none.
func (b *big) groupRecord(number uint32) groupRecord {
	m := b.keys()
	var key mapKey
	r, _ := m.EditAt(markGroup, key.of(keyGroup, number))
	return r
}

// numbered is the group with a number.
func (b *big) numbered(number uint32) (g group, found bool) {
	m := b.keys()
	var key mapKey
	r, found := m.GetAt(markGroup, key.of(keyGroup, number))
	if !found || groupRecord(r).isGone() {
		return g, false
	}
	return b.groupOf(number, r), true
}

// group returns the group with a name.
func (b *big) group(name []byte) (g group, found bool) {
	if len(name) > maxName {
		return g, false
	}
	m := b.keys()
	var key nameKey
	value, found := m.GetAt(markName, key.group(name))
	if !found {
		return g, false
	}
	g, found = b.numbered(binary.LittleEndian.Uint32(value))
	g.name = name
	return g, found
}

// eachGroup calls f for the groups in the order of their names, those behind after, until f returns false.
// nil: from the first one on.
func (b *big) eachGroup(after []byte, f func(g *group) bool) {
	m := b.keys()
	var key nameKey
	from := key.group(after[:min(len(after), maxName)])
	for c := m.Seek(from); c.HasPrefix([]byte{keyName}); c.Next() {
		g, _ := b.numbered(binary.LittleEndian.Uint32(c.Value()))
		if after != nil && bytes.Equal(g.name, after) {
			continue
		}
		if !f(&g) {
			return
		}
	}
}

// createGroup makes a group; number is 0 if it gets the next one. After an error nothing has changed.
func (b *big) createGroup(number uint32, name []byte, last ID, read int64) (g group, err error) {
	own := b.v.Own()
	next := max(1, binary.LittleEndian.Uint32(own[ownNextGroup:]))
	if number == 0 {
		number = next
	}
	switch {
	case len(name) > maxName:
		return g, errLongName
	case number == math.MaxUint32:
		return g, errNumbers
	}
	var record [groupName + maxName]byte
	r := groupRecord(record[:groupName+copy(record[groupName:], name)])
	r.setLast(last)
	r.setRead(read)
	r.setOldest(undelivered)
	m := b.keys()
	var key mapKey
	if _, err := m.Set(key.of(keyGroup, number), r); err != nil {
		return g, err
	}
	var named nameKey
	var value [4]byte
	binary.LittleEndian.PutUint32(value[:], number)
	if _, err := m.Set(named.group(name), value[:]); err != nil {
		m.Delete(key.of(keyGroup, number))
		return g, err
	}
	binary.LittleEndian.PutUint32(b.v.Own()[ownNextGroup:], max(next, number+1))
	b.addGroups(1)
	return group{name: name, number: number, last: last, read: read, oldest: undelivered}, nil
}

// setGroup stores last and read.
func (b *big) setGroup(number uint32, last ID, read int64) {
	if r := b.groupRecord(number); r != nil {
		r.setLast(last)
		r.setRead(read)
	}
}

// destroyGroup removes a group. Its keys are gone later (sweep).
func (b *big) destroyGroup(g *group) {
	b.flush()
	m := b.keys()
	var key nameKey
	r := b.groupRecord(g.number)
	name := key.group(r[groupName:]) // g may have a view from before other changes
	m.Delete(name)
	r = b.groupRecord(g.number)
	r[groupGone] = 1
	own := b.v.Own()[ownGone:]
	r.setNext(binary.LittleEndian.Uint32(own))
	binary.LittleEndian.PutUint32(own, g.number)
	b.addGroups(-1)
	b.v.SetDue(overdue)
}

// overdue is a time that has passed: a stream with groups that are gone is due.
const overdue = 1

// eachNumber calls f for groups in the order of their numbers, until f returns false. It takes a
// step for each, and ends when there are none left. It returns where to go on, 0 at the end.
func (b *big) eachNumber(from uint32, steps *int, f func(g group) bool) (next uint32) {
	m := b.keys()
	var key mapKey
	for c := m.Seek(key.of(keyGroup, from)); c.HasPrefix([]byte{keyGroup}); c.Next() {
		var at mapKey
		number := binary.BigEndian.Uint32(c.AppendKey(at[:0])[1:])
		if *steps <= 0 {
			return number
		}
		*steps--
		if r := groupRecord(c.Value()); !r.isGone() && !f(b.groupOf(number, r)) {
			return number + 1
		}
	}
	return 0
}

// pendingIn looks for the next group, from the one on with which the batch goes on, in which
// entries of the batch are pending, and returns these, a bit each, and the group behind it, or 0.
// It takes steps like eachNumber, and for each look for an ID. The batch learns what was not
// delivered to the groups.
func (b *big) pendingIn(of *batch, steps *int) (g group, found uint64, next uint32) {
	next = b.eachNumber(of.from, steps, func(x group) bool {
		if x.last.less(of.undelivered) {
			of.undelivered = x.last
		}
		if x.pending > 0 {
			g, found = x, b.pendingOf(&x, of, steps)
		}
		return found == 0
	})
	return g, found, next
}

// pendingOf returns which entries of a batch are pending in a group, a bit each.
func (b *big) pendingOf(g *group, of *batch, steps *int) (found uint64) {
	m := b.keys()
	var key, at, prefix mapKey
	front := prefix.of(keyPending, g.number)
	for order := of.order; len(order) > 0; {
		*steps--
		c := m.Seek(key.pending(g.number, of.ids[order[0]]))
		for near := true; near && len(order) > 0; c.Next() {
			if !c.HasPrefix(front) {
				return found
			}
			id := keyID(c.AppendKey(at[:0])[len(front):])
			near = !id.less(of.ids[order[0]])
			for len(order) > 0 && !id.less(of.ids[order[0]]) {
				if of.ids[order[0]] == id {
					found |= 1 << order[0]
				}
				order = order[1:]
			}
		}
	}
	return found
}
