package engine

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// The effects of a command that makes several changes, or of a transaction, form a unit: one effect
// that contains the others. So a receiver applies all of them or none (feed_unit_apply.go). They
// gather aside, for each receiver, and go into its log when the unit ends:
//
//	BeginUnit ─> set a, del b, set c ─────────────────────────> Unlock ─> log: … unit{set a, del b, set c}
//	             others' effects of the shard ─> log
//
// The unit of a hold gathers over all of its slices, and ends with the hold. Until then a snapshot
// of the partition goes on, and may have what the holder has half done; but the marks behind the
// snapshot wait for the unit, so no copy counts as whole before. A value with parts that the
// snapshot comes to waits for the end of the unit, and so does the rest of the snapshot behind it.
//
// A large value is not logged and so is in no unit: it goes behind the unit, as it is then. So a
// follower that takes over in between has the unit without the large value, as it was before the
// unit or not at all. In the unit, the value would have to be pinned at the unit's end until the
// stream gets there: a slow receiver would keep up to 512 MiB of the owner's memory that nobody can
// evict, for each value. And receivers would have to stage it until the unit comes, which needs
// effects that members of lower levels do not know.

// maxUnit is the longest unit. The feed of the partition to a receiver ends if a unit gets longer, and
// the receiver gets the partition anew.
const maxUnit = 512 << 10

// unit is one that gathers.
type unit struct {
	p     uint16
	sides []side
	marks []lateMark
}

// side is what of a unit one receiver will get.
type side struct {
	feedLog           // of the effects alone
	count   int       // of effects
	large   []lateKey // of large values
	keys    int       // bytes that these take
}

// lateKey is an effect behind the unit: its word, and the key as a record has it.
type lateKey struct {
	word header
	key  []byte
}

// lateMark is a mark behind the unit.
type lateMark struct {
	to   Receiver
	mark Mark
}

// BeginUnit makes one unit of all effects on the partition that are logged until EndUnit or Unlock.
// Members understand units from ring.EffectsLevel on; the caller begins none in a cluster below it. If the
// partition has a unit already, the effects are in that one, and it goes on behind the next EndUnit. Without
// an EndUnit it goes on until Unlock.
func (t Txn) BeginUnit() {
	switch f := &t.s.feeds; {
	case f.unit != nil:
		f.nested++
	case t.s.feeding && f.unitOf(t.section) == nil:
		f.endView()
		f.unit = &f.own
		f.unit.p = PartitionOf(t.section)
	}
}

// EndUnit ends what BeginUnit began.
func (t Txn) EndUnit() {
	switch f := &t.s.feeds; {
	case f.nested > 0:
		f.nested--
	case f.unit != nil:
		f.endView()
		f.endOwnUnit()
	}
}

// endOwnUnit ends the unit of the present lock.
func (f *shardFeeds) endOwnUnit() {
	f.endUnit(f.unit)
	f.unit, f.nested = nil, 0
	f.noteFeeding()
}

// HoldUnit is Hold. All effects on the partition until the hold ends form one unit, together with those
// since BeginUnit.
func (t Txn) HoldUnit() *Hold {
	h, f := t.Hold(), &t.s.feeds
	h.unit = &unit{p: h.partition}
	if f.unit != nil && f.unit.p == h.partition {
		f.endView()
		*h.unit, f.own, f.unit, f.nested = f.own, unit{}, nil, 0
		f.noteFeeding()
	}
	return h
}

// unitOf returns the unit that gathers the effects of a partition, or of that of a section; nil if there is
// none.
func (f *shardFeeds) unitOf(p uint16) *unit {
	if u := f.unit; u != nil && u.p == PartitionOf(p) {
		return u
	}
	if h := f.s.holder(p); h != nil {
		return h.unit
	}
	return nil
}

// mayGather reports whether some partition of the shard may have a unit. It costs less than unitOf.
func (f *shardFeeds) mayGather() bool { return f.unit != nil || len(f.s.holds) != 0 }

// gather puts an effect into the unit, for a receiver of its partition. body has two parts.
func (f *shardFeeds) gather(u *unit, r Receiver, h header, second int64, body, rest []byte) {
	d := u.sideOf(f.logs[r])
	words, _ := h.effectParts()
	n := words + len(body) + len(rest)
	f.thirsty = f.thirsty || f.s.e.feeds.low()
	if d.bytes+d.keys+n > min(maxUnit, f.s.e.feeds.longest()/2) || !d.grow(n) {
		f.stopOne(u.p, d.to)
		return
	}
	if h.effect() == EffectLarge {
		d.large = append(d.large, lateKey{h, bytes.Clone(body)})
		d.keys += n
		return
	}
	var buf [2 * wordSize]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(h))
	binary.LittleEndian.PutUint64(buf[wordSize:], uint64(second))
	d.write(buf[:words])
	d.write(body)
	d.write(rest)
	d.bytes += n
	d.count++
}

// sideOf returns the side of the unit for the receiver of the log.
func (u *unit) sideOf(l *feedLog) *side {
	for i := range u.sides {
		if u.sides[i].to == l.to {
			return &u.sides[i]
		}
	}
	u.sides = append(u.sides, side{feedLog: feedLog{to: l.to, blocks: l.blocks}})
	return &u.sides[len(u.sides)-1]
}

// grow makes room for n bytes. It reports false without memory for them.
func (d *side) grow(n int) bool {
	for room := len(d.free); room < n; room += blockSize {
		b := d.blocks.take()
		if b == 0 {
			return false
		}
		d.link(b)
	}
	return true
}

// clear forgets what the side has.
func (d *side) clear() {
	d.drop()
	d.count, d.large, d.keys = 0, nil, 0
}

// stopOne stops the feed of one partition to a receiver: not all of its effects can be logged.
func (f *shardFeeds) stopOne(p uint16, to *receiver) {
	f.setTargets(p, f.targetsOf(p).without(to.number))
	to.stopped(p)
	to.wake()
}

// stopAll stops the feed of one partition to all receivers.
func (f *shardFeeds) stopAll(p uint16) {
	for t := f.targetsOf(p); t != 0; t >>= 8 {
		f.stopOne(p, f.logs[t.first()].to)
	}
}

// forgetSides forgets what the partition's unit has for others than the receivers.
func (f *shardFeeds) forgetSides(p uint16, t targets) {
	u := f.unitOf(p)
	if u == nil {
		return
	}
	for i := range u.sides {
		if d := &u.sides[i]; !t.has(d.to.number) {
			d.clear()
		}
	}
	u.marks = slices.DeleteFunc(u.marks, func(m lateMark) bool { return !t.has(m.to) })
}

// endUnit logs the unit, and what is behind it.
func (f *shardFeeds) endUnit(u *unit) {
	for i := range u.sides {
		d := &u.sides[i]
		if d.count > 0 {
			f.logUnit(u.p, d)
		}
		for _, late := range d.large { // none if the log has overflowed
			if l := f.log(d.to.number); f.targetsOf(u.p).has(d.to.number) {
				l.put(f.s, late.word, 0, late.key)
			}
		}
		d.clear()
	}
	clear(u.sides)
	u.sides = u.sides[:0]
	marks := u.marks
	u.marks = nil // a log that overflows for a mark has forgetSides change them
	for _, m := range marks {
		f.logMark(u.p, m.to, m.mark)
	}
}

// splicedFrom is how many bytes of a unit are not copied into its log, which gets its blocks: to
// copy the longest unit takes 0.2 ms.
const splicedFrom = 8 * blockSize

// logUnit logs the effects of a side as one. A single effect needs no unit.
func (f *shardFeeds) logUnit(p uint16, d *side) {
	l, n := f.log(d.to.number), d.bytes
	words := 2 * wordSize
	var head [2 * wordSize]byte
	binary.LittleEndian.PutUint64(head[:], uint64(otherEffect(EffectUnit, p, 0).withRest(n)))
	switch {
	case d.count == 1:
		words = 0
	case n >= splicedFrom:
		l.splice(f.s, head[:], &d.feedLog)
		return
	}
	if words+n > len(l.free) && !l.lengthen(f.s, words+n) {
		return
	}
	l.write(head[:words])
	for b, left := d.first, n; left > 0; b = d.blocks.next[b] {
		part := d.blocks.block(b)[:min(left, blockSize)]
		l.write(part)
		left -= len(part)
	}
	l.bytes += words + n
}
