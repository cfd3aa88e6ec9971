package engine

import "bytes"

const (
	// snapshotAtOnce is how many items are logged under one lock, and snapshotBytes how many bytes.
	snapshotAtOnce = 64
	snapshotBytes  = 32 << 10
	// A cursor of a snapshot has the database above the cursor of a walk.
	snapshotShift = 40
)

// Snapshot logs items of partition p for r, in all databases, about atMost bytes of them, from the
// cursor on. The first cursor is 0; next is where to go on. done, with next WalkEnd: all items are logged, or p is
// not fed to r any more. While the log is half full, Snapshot logs nothing and next is the cursor:
// the caller collects first. So it is while p has a unit and a value with parts is next: the caller
// asks again after a while.
func (e *Engine) Snapshot(p uint16, r Receiver, cursor uint64, atMost int, nowMilli int64) (next uint64, done bool) {
	s := e.shardOf(p)
	if cursor == 0 {
		s.feeds.beginSnapshot(p, r)
	}
	for logged := 0; logged < atMost; {
		e.refillFeeds()
		there, room := s.feeds.snapshotRoom(p, r)
		if !there {
			return WalkEnd, true
		}
		room = min(room, atMost-logged, snapshotBytes)
		if room <= 0 {
			return cursor, false
		}
		n, more, waits := s.feeds.logChunk(p, r, room, nowMilli)
		if waits {
			return cursor, false
		}
		if more {
			logged += n
			continue
		}
		if cursor == WalkEnd {
			if !s.feeds.endSnapshot(p, r) {
				continue
			}
			return WalkEnd, true
		}
		before := room
		section := Section(p, uint8(cursor>>snapshotShift))
		// At time 0 no item is expired. One that is, and was not removed yet, goes along: if p is another node's before that
		// happens, that node removes and announces it.
		w := walk{s: s, section: section, from: cursor & (1<<snapshotShift - 1), now: 0, unfinished: true}
		at, end := w.run(snapshotAtOnce, func(item Item) bool {
			if item.header.isRoot() {
				s.feeds.noteBigItem(section, r, item)
			} else if s.feeds.targetsOf(p).has(r) {
				s.feeds.logSnapshot(r, item)
			}
			room -= int(item.header.recordLen())
			return room > 0
		})
		if cursor = cursor&^(1<<snapshotShift-1) | at; end {
			cursor = s.nextInSnapshot(section)
		}
		logged += before - room
		logged++ // an empty stretch counts, too
	}
	return cursor, false
}

// nextInSnapshot is the cursor behind all items of a section: where the next section begins that has
// keys. What others get meanwhile is in the log.
func (s *shard) nextInSnapshot(section uint16) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := DatabaseOf(section) + 1; d < Databases; d++ {
		if s.partition(Section(PartitionOf(section), d)).count > 0 {
			return uint64(d) << snapshotShift
		}
	}
	return WalkEnd
}

// snapshotRoom reports whether p is fed to r, and how many bytes of a snapshot the log should get.
func (f *shardFeeds) snapshotRoom(p uint16, r Receiver) (fed bool, room int) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if !f.targetsOf(p).has(r) {
		return false, 0
	}
	return true, f.s.e.feeds.longest()/2 - f.log(r).bytes
}

// snapshot is what is on its way of the snapshot of a partition.
type snapshot struct {
	walks bool // it is not at the end of the items
	big   []*bigValue
	known map[uint32]struct{} // incarnations that need not be noted when they are renamed
}

// maxKnown bounds what is renamed while a snapshot is on its way. With more, it begins anew.
const maxKnown = 1 << 16

// bigValue is a value with parts that the snapshot has come to. It goes in chunks, between effects. A
// change of the value is either in a chunk that is made later, or logged behind the chunks that were
// made before: the latest word on an element holds.
type bigValue struct {
	section     uint16
	key         []byte
	incarnation uint32 // 0 before its snapshot has begun
	from        Place
}

// is reports whether the value is that of a key.
func (b *bigValue) is(section uint16, key []byte) bool {
	return b.section == section && bytes.Equal(b.key, key)
}

// begunChunks is the value's snapshot that is on its way to r; nil if there is none, or if it has not
// begun, so that r has no value that a delta could change.
func (f *shardFeeds) begunChunks(v Parts, r Receiver) *bigValue {
	to := f.s.e.feeds.receivers[r].Load()
	if to == nil {
		return nil
	}
	to.snapshotsMu.Lock()
	defer to.snapshotsMu.Unlock()
	if sn := to.snapshots[PartitionOf(v.t.section)]; sn != nil {
		for _, b := range sn.big {
			if b.incarnation == v.Incarnation() && b.is(v.t.section, v.Key()) {
				return b
			}
		}
	}
	return nil
}

// chunkSize is about how much of a value with parts is dumped under one lock, and applied under one: 125
// elements of 32 bytes, as many as one run of a command adds. In a hash of two million fields, which is in
// no cache, 99 of 100 locks of a move then take less than 180 µs beside builds on all processors
// (TestLockTimes).
const chunkSize = 4 << 10

// maxAnew is how many values of a partition can be asked for at a time with SendAnew.
const maxAnew = 64

// SendAnew has the value under key logged anew for r by the next calls of Snapshot, to which the
// cursor may be WalkEnd. It reports false if there is none with parts, or if p is not fed to r, or
// if too many are being sent anew. Like Snapshot it is called in one goroutine for each receiver.
func (e *Engine) SendAnew(section uint16, r Receiver, key []byte, nowMilli int64) bool {
	t := e.Lock(section, nowMilli)
	defer t.Unlock()
	item, found := t.Peek(key)
	if !found || !item.header.isRoot() || !t.s.feeds.targetsOf(section).has(r) {
		return false
	}
	to := e.feeds.receivers[r].Load()
	if to == nil {
		return false
	}
	to.snapshotsMu.Lock()
	defer to.snapshotsMu.Unlock()
	sn := to.snapshotOf(PartitionOf(section))
	if sn.waiting(section, key) == nil {
		if len(sn.big) >= maxAnew {
			return false
		}
		sn.note(section, key)
	}
	return true
}

// noteBigItem notes that the snapshot has come to a value with parts. Of one that is built aside its
// receivers learn when it is made, or gets its key.
func (f *shardFeeds) noteBigItem(section uint16, r Receiver, item Item) {
	to := f.s.e.feeds.receivers[r].Load()
	if v, _ := (Txn{s: f.s, section: section}).Parts(item); to == nil || v.head().aside {
		return
	}
	to.snapshotsMu.Lock()
	defer to.snapshotsMu.Unlock()
	to.snapshotOf(PartitionOf(section)).note(section, item.Key())
}

// noteRenamed notes that a value with parts gets another key while a snapshot is on its way to r, and
// reports whether its chunks are: they go on under the new key. If they are yet to begin, they begin
// there. If the snapshot is yet to come to the value, it may have passed the new key, so the value is
// noted, once: otherwise the snapshot would end without it. Nobody knows whether r has it already.
func (f *shardFeeds) noteRenamed(v Parts, r Receiver, section uint16, key []byte) (begun bool) {
	b := f.begunChunks(v, r)
	to := f.s.e.feeds.receivers[r].Load()
	if to == nil {
		return false
	}
	to.snapshotsMu.Lock()
	defer to.snapshotsMu.Unlock()
	p := PartitionOf(section)
	sn := to.snapshots[p]
	if sn == nil {
		return false
	}
	if b == nil {
		b = sn.waiting(v.t.section, v.Key())
	}
	if b != nil {
		b.section, b.key = section, bytes.Clone(key)
		return b.incarnation != 0
	}
	switch _, known := sn.known[v.Incarnation()]; {
	case known || !sn.walks:
	case sn.learn(v.Incarnation()):
		sn.note(section, key)
	default:
		f.setTargets(p, f.targetsOf(p).without(r))
		to.stopped(p)
		to.wake()
	}
	return false
}

// noteAside notes that these receivers have a value from when it was begun aside. So it need not be noted
// when it gets its key.
func (f *shardFeeds) noteAside(v Parts, t targets) {
	for ; t != 0; t >>= 8 {
		if to := f.s.e.feeds.receivers[t.first()].Load(); to != nil {
			to.snapshotsMu.Lock()
			if sn := to.snapshots[PartitionOf(v.t.section)]; sn != nil && sn.walks {
				sn.learn(v.Incarnation())
			}
			to.snapshotsMu.Unlock()
		}
	}
}

// learn makes an incarnation known. It reports false if there is no room.
func (sn *snapshot) learn(incarnation uint32) bool {
	if len(sn.known) >= maxKnown {
		return false
	}
	if sn.known == nil {
		sn.known = map[uint32]struct{}{}
	}
	sn.known[incarnation] = struct{}{}
	return true
}

// snapshotOf is what is on its way of p's snapshot, maybe nothing yet.
func (to *receiver) snapshotOf(p uint16) *snapshot {
	if to.snapshots == nil {
		to.snapshots = map[uint16]*snapshot{}
	}
	sn := to.snapshots[p]
	if sn == nil {
		sn = &snapshot{}
		to.snapshots[p] = sn
	}
	return sn
}

// note has the value under a key sent in chunks.
func (sn *snapshot) note(section uint16, key []byte) {
	sn.big = append(sn.big, &bigValue{section: section, key: bytes.Clone(key)})
}

// waiting is the value under a key if its chunks are yet to begin.
func (sn *snapshot) waiting(section uint16, key []byte) *bigValue {
	for _, b := range sn.big {
		if b.incarnation == 0 && b.is(section, key) {
			return b
		}
	}
	return nil
}

func (f *shardFeeds) beginSnapshot(p uint16, r Receiver) {
	f.dropSnapshot(p, r)
	if to := f.s.e.feeds.receivers[r].Load(); to != nil {
		to.snapshotsMu.Lock()
		to.snapshotOf(p).walks = true
		to.snapshotsMu.Unlock()
	}
}

// endSnapshot reports whether the snapshot of p is at its end, behind all items: no value waits for
// its chunks.
func (f *shardFeeds) endSnapshot(p uint16, r Receiver) bool {
	to := f.s.e.feeds.receivers[r].Load()
	if to == nil {
		return true
	}
	to.snapshotsMu.Lock()
	defer to.snapshotsMu.Unlock()
	if sn := to.snapshots[p]; sn != nil && len(sn.big) > 0 {
		return false
	}
	delete(to.snapshots, p)
	return true
}

// dropSnapshot forgets the snapshot of p, which ends or begins anew.
func (f *shardFeeds) dropSnapshot(p uint16, r Receiver) {
	if to := f.s.e.feeds.receivers[r].Load(); to != nil {
		to.snapshotsMu.Lock()
		delete(to.snapshots, p)
		to.snapshotsMu.Unlock()
	}
}

// logChunk logs a chunk, of up to room bytes, of a value that the snapshot has come to. more: there
// was a chunk, though perhaps the last. waits: it must wait for the end of a unit.
func (f *shardFeeds) logChunk(p uint16, r Receiver, room int, now int64) (logged int, more, waits bool) {
	to := f.s.e.feeds.receivers[r].Load()
	if to == nil {
		return 0, false, false
	}
	var b *bigValue
	to.snapshotsMu.Lock()
	if sn := to.snapshots[p]; sn != nil && len(sn.big) > 0 {
		b = sn.big[0]
	}
	to.snapshotsMu.Unlock()
	if b == nil {
		return 0, false, false
	}
	logged, done, waits := f.logChunkOf(b, p, r, min(room, chunkSize), now)
	if done {
		to.snapshotsMu.Lock()
		if sn := to.snapshots[p]; sn != nil && len(sn.big) > 0 && sn.big[0] == b {
			sn.big = sn.big[1:]
		}
		to.snapshotsMu.Unlock()
	}
	return logged, true, waits
}

// logChunkOf logs the next chunk of a value, up to about atMost bytes, and reports whether it was
// the last. It logs nothing while a unit gathers, and reports that it waits: in the unit, chunks
// would make that too long, and in front of it they would have changes that the unit makes once
// more.
func (f *shardFeeds) logChunkOf(
	b *bigValue, p uint16, r Receiver, atMost int, now int64,
) (logged int, done, waits bool) {
	locked := f.s.e.Lock(p, now)
	defer locked.Unlock()
	t := locked.Select(DatabaseOf(b.section))
	if f.unitOf(p) != nil {
		return 0, false, true
	}
	item, found := t.peekAny(b.key)
	v, ok := t.Parts(item)
	if !found || !ok || !f.targetsOf(b.section).has(r) || b.incarnation != 0 && v.Incarnation() != b.incarnation {
		return 0, true, false // what became of the key is in the log
	}
	only := targets(0).with(r)
	if b.incarnation == 0 {
		b.incarnation = v.Incarnation()
		f.logBeginTo(only, v, true)
	}
	var delta []byte
	delta, b.from, done = f.s.e.forms[v.Type()].Dump(v, b.from, nil, atMost)
	second := partsWord(b.incarnation)
	if done && !v.head().unfinished { // or the delta that ends what is coming here goes on to r
		second |= wholeBit
	}
	f.logParts(only, EffectDelta, v, second, delta)
	return len(delta) + 1, done, false
}
