package streams

import (
	"encoding/binary"
	"math"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// payloads is what DUMP and RESTORE ask about streams.
var payloads = exec.Payloads{
	Kind:        rdb.KindStream,
	Own:         ownSize,
	AppendSmall: appendDump,
	Dump:        dumpBig,
	ReadSmall:   restoreSmall,
	Restore:     restore,
}

// appendDump appends the payload of a small stream, which has no groups.
func appendDump(dst []byte, item engine.Item, valkey bool) []byte {
	var body []byte
	d := dumper{w: rdb.StreamWriter{Actives: valkey, Out: func(piece []byte) error {
		body = append(body, piece...)
		return nil
	}}}
	v := viewSmall(item.Value())
	v.each(minID, func(id ID, e entry) bool {
		if d.first.isZero() {
			d.first = id
		}
		d.entry(id, &e)
		return true
	})
	d.info(&v)
	head, _ := d.w.End() // Out has no errors
	return append(append(dst, head...), body...)
}

// dumper is the exec.Dumper of a big stream. What it reads under the shard's lock it writes at once,
// into memory, but for a long entry: that is pinned, ends its slice, and is written behind it.
type dumper struct {
	e *engine.Engine
	w rdb.StreamWriter

	next     dumpPart // nil: all was read
	steps    int      // that are left under this lock
	first    ID       // of the entries; its block may have been read already
	from     ID       // the next entry, or pending entry
	group    group    // which is being written; its name is a copy
	consumer consumer // of it
	long     longEntry

	strings [][]byte // of a short entry
	text    []byte   // those of them that are numbers
}

// dumpPart reads a part of a stream as far as the lock allows, and returns what is to be read next.
type dumpPart func(d *dumper, v *view) dumpPart

const (
	// An entry with more than so many bytes or strings is long.
	longBytes   = 4 << 10
	longStrings = 128
)

// dumpBig begins the payload of a big stream.
func dumpBig(e *engine.Engine, valkey bool) exec.Dumper {
	return &dumper{e: e, w: rdb.StreamWriter{Actives: valkey}, next: dumpEntries}
}

// Take reads what comes next in the stream.
func (d *dumper) Take(pin *engine.ValuePin) (done bool) {
	v := pinned(pin)
	d.w.Out, d.steps = nil, dumpSteps
	for d.next != nil && d.step() {
		d.next = d.next(d, &v)
	}
	return d.next == nil
}

// step takes one of the steps of this lock, if there is one left.
func (d *dumper) step() bool {
	d.steps--
	return d.steps >= 0 && d.w.Kept() < dumpBytes && !d.long.held
}

func dumpEntries(d *dumper, v *view) dumpPart {
	left := false
	v.each(d.from, func(id ID, e entry) bool {
		if d.from = id; !d.step() {
			left = true
			return false
		}
		if d.first.isZero() {
			d.first = id
		}
		if e.strings() > longStrings || e.bytes() > longBytes {
			d.long.hold(d.e, id, &e)
		} else {
			d.entry(id, &e)
		}
		next, more := id.next()
		d.from, left = next, more && d.long.held
		return more && !left
	})
	if left {
		return dumpEntries
	}
	return dumpInfo
}

// entry writes a short entry.
func (d *dumper) entry(id ID, e *entry) {
	d.strings, d.text = d.strings[:0], d.text[:0]
	d.steps -= e.strings() / 2
	e.each(func(_ int, s shape.Item) bool {
		d.strings, d.text = appendItem(d.strings, d.text, s)
		return true
	})
	d.w.Entry(rdb.StreamEntry{ID: rdb.StreamID(id), Strings: d.strings})
}

// appendItem appends a string to all. Text has the strings of numbers; those that were there stay.
func appendItem(all [][]byte, text []byte, s shape.Item) (_ [][]byte, _ []byte) {
	if _, isInt := s.Int(); !isInt {
		return append(all, s.Long()), text
	}
	begun := len(text)
	text = s.Append(text)
	return append(all, text[begun:len(text):len(text)]), text
}

// dumpInfo writes what stands behind the entries.
func dumpInfo(d *dumper, v *view) dumpPart {
	d.info(v)
	return dumpGroup
}

func (d *dumper) info(v *view) {
	m := v.meta()
	d.w.Info(rdb.StreamInfo{
		Len: v.len(), First: rdb.StreamID(d.first), Last: rdb.StreamID(m.last), MaxDeleted: rdb.StreamID(m.maxDeleted),
		Added: int64(min(m.added, math.MaxInt64)), Groups: v.groups(),
	})
}

// dumpGroup begins the next group.
func dumpGroup(d *dumper, v *view) (then dumpPart) {
	v.eachGroup(d.group.name, func(g *group) bool {
		d.group, d.from = *g, minID
		d.group.name = append([]byte{}, g.name...)
		d.w.Group(rdb.StreamGroup{
			Name: g.name, Last: rdb.StreamID(g.last), Read: g.read, Pending: g.pending, Consumers: g.consumers,
		})
		then = dumpPending
		return false
	})
	return then
}

// dumpPending writes what is pending in the group. Times move with the value from clock to clock, so an early
// one may have come before the first that a payload can have, as may those of consumers.
func dumpPending(d *dumper, v *view) dumpPart {
	left := false
	v.eachPending(&d.group, nil, d.from, func(p pending) bool {
		if d.from = p.id; !d.step() {
			left = true
			return false
		}
		d.w.Pending(rdb.StreamPending{
			ID: rdb.StreamID(p.id), Delivered: max(p.delivered, 0), Count: int64(min(p.count, math.MaxInt64)),
		})
		return true
	})
	if left {
		return dumpPending
	}
	d.w.Consumers(d.group.consumers)
	d.consumer = consumer{}
	return dumpConsumer
}

// dumpConsumer writes the next consumers of the group, until one has pending entries.
func dumpConsumer(d *dumper, v *view) dumpPart {
	then := dumpPart(dumpGroup)
	v.eachConsumer(&d.group, d.consumer.name, func(c *consumer) bool {
		if then = dumpConsumer; !d.step() {
			return false
		}
		d.consumer, d.from = *c, minID
		d.consumer.name = append([]byte{}, c.name...)
		d.w.Consumer(rdb.StreamConsumer{
			Name: c.name, Seen: max(c.seen, 0), Active: max(c.active, never), Pending: c.pending,
		})
		if c.pending > 0 {
			then = dumpOwned
			return false
		}
		then = dumpGroup
		return true
	})
	return then
}

// dumpOwned writes what is pending for the consumer.
func dumpOwned(d *dumper, v *view) dumpPart {
	left := false
	v.eachOwed(&d.group, &d.consumer, d.from, func(id ID) bool {
		if d.from = id; !d.step() {
			left = true
			return false
		}
		d.w.PendingID(rdb.StreamID(id))
		return true
	})
	if left {
		return dumpOwned
	}
	return dumpConsumer
}

// eachOwed calls f for the IDs of what is pending for a consumer, from one on, until f returns false.
func (b *big) eachOwed(g *group, c *consumer, from ID, f func(id ID) bool) {
	m := b.keys()
	var key, at, prefix mapKey
	of := binary.BigEndian.AppendUint32(prefix.of(keyOwed, g.number), c.number)
	for x := m.Seek(key.owed(g.number, c.number, from)); x.HasPrefix(of); x.Next() {
		if !f(keyID(x.AppendKey(at[:0])[len(of):])) {
			return
		}
	}
}

// Write writes what Take has read.
func (d *dumper) Write(out func(piece []byte) error) error {
	d.w.Out = out
	if d.long.held {
		if !d.long.write(d.e, &d.w) {
			return errNoMemory
		}
		d.long.release()
	}
	return d.w.Flush()
}

// End writes the rest.
func (d *dumper) End(out func(piece []byte) error) (head []byte, err error) {
	d.w.Out = out
	return d.w.End()
}

// Release forgets an entry that was not written.
func (d *dumper) Release() { d.long.release() }
