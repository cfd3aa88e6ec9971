package stream

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
)

const (
	// snapshotPiece is how much of a snapshot is logged at a time, and snapshotPieces how many
	// pieces in a round.
	snapshotPiece  = 64 << 10
	snapshotPieces = 4
	// aheadShare is the part of the window that a snapshot leaves to the changes.
	aheadShare = 4
	// restWindow is how much may be unacknowledged when a snapshot goes on while loops are strained:
	// the receiver's loop applies all that has arrived in one turn.
	restWindow = 128 << 10
	// toldMemory is for how long a receiver that says that it is strained is believed.
	toldMemory = 30 * time.Millisecond
	// valuePieces is how many pieces of a large value go in a round.
	valuePieces = 4
	// smallRest is what a batch may fall short of its size.
	smallRest = 4 << 10
)

// round makes batches of what is logged, and has a piece of a snapshot logged. It returns how long
// to wait then; a kick ends the wait.
func (s *Sender) round() (wait time.Duration) {
	made := s.made
	room := s.collect()
	s.collected()
	if s.made != made {
		s.noteSent()
		s.asleep.Store(false)
	}
	if !room {
		return s.starve()
	}
	delay := time.Duration(0)
	if s.sending == 0 { // or else the snapshot would be far ahead of what it has cost
		delay = s.fill()
	}
	left := s.due - s.cfg.Monotonic()
	switch {
	case delay == 0:
		return 0
	case s.made != made:
		return min(delay, s.pollPeriod()) // more is likely to come, and then need not wake anybody
	case left <= 0:
		s.heartbeat()
		return 0
	case !s.asleep.Load():
		s.asleep.Store(true)
		return 0 // what was logged before is seen in the next round, what comes later kicks
	}
	return min(delay, left)
}

// noteSent notes that the receiver has just been sent something. If nothing follows, the heartbeat is
// due within replica.Heartbeat, at a moment that the idle streams of a process have in common.
func (s *Sender) noteSent() {
	const moments = replica.Heartbeat / 2
	first := beat.Until(moments)
	s.due = s.cfg.Monotonic() + first + (replica.Heartbeat-first)/moments*moments
}

// starve waits for acknowledgements, if there is no room in the window, nor memory to widen it.
func (s *Sender) starve() time.Duration {
	s.widen()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasRoomLocked(replica.PayloadMost) {
		return 0
	}
	s.hungry.Store(true)
	return replica.Heartbeat
}

// heartbeat makes an empty batch. By then a stream has been silent, and needs no wide window.
func (s *Sender) heartbeat() {
	s.shrink()
	s.batch(nil)
	s.noteSent()
}

// collected tells the machine that everything collected is in batches.
func (s *Sender) collected() {
	e := s.cfg.Engine
	spilt := e.LostLog(s.feed)
	s.lost = e.Overflowed(s.feed, s.lost[:0])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Collected(spilt, s.lost)
	s.actLocked()
}

// collect makes batches of what is logged, once around the shards, and reports whether the window
// has room for more.
func (s *Sender) collect() (room bool) {
	out := s.payload[:0]
	for range s.values {
		if !s.room() {
			break
		}
		shard := s.next
		if s.next++; s.next == len(s.values) {
			s.next = 0
		}
		if !s.sendPieces(shard) {
			continue
		}
		out = s.collectShard(shard, out)
	}
	if len(out) > 0 {
		s.batch(out)
	}
	return s.room()
}

// collectShard appends what a shard has logged, and makes batches as they become full.
func (s *Sender) collectShard(shard int, out []byte) []byte {
	for {
		collection, room := s.beginCollection()
		if !room {
			return out
		}
		part, more := s.cfg.Engine.Collect(s.feed, shard, out[len(out):], replica.PayloadMost-len(out))
		if kind, section, key, size := engine.NextEffect(part); kind == engine.EffectLarge && size == len(part) {
			var began bool
			if out, began = s.beginValue(shard, section, key, out); began {
				return out
			}
		} else if cap(out)-len(out) >= len(part) {
			out = out[:len(out)+len(part)] // it was appended in place
		} else {
			out = append(out, part...)
		}
		if !more {
			s.emptied(shard, collection)
			return out
		}
		if len(out) >= replica.PayloadMost-smallRest {
			s.batch(out)
			out = out[:0]
		}
	}
}

// beginCollection returns the number of the next collection, if the window has room for it.
func (s *Sender) beginCollection() (collection uint64, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasRoomLocked(replica.PayloadMost) {
		return 0, false
	}
	return s.machine.Collect(), true
}

func (s *Sender) emptied(shard int, collection uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Emptied(shard, collection)
}

// room reports whether the window has room for a batch.
func (s *Sender) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasRoomLocked(replica.PayloadMost)
}

// roomForSnapshot reports whether the window has room for a piece of a snapshot.
func (s *Sender) roomForSnapshot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomForSnapshotLocked()
}

func (s *Sender) roomForSnapshotLocked() bool {
	return s.hasRoomLocked(s.window.Most() / aheadShare)
}

// hasRoomLocked reports whether the window has room for n bytes. A narrow one with room for a batch
// has room for a piece of a snapshot, too.
func (s *Sender) hasRoomLocked(n int) bool { return s.window.Room() >= n }

// widen widens a narrow window that has no room, if there is memory. It charges that without mu:
// the engine may have to evict for it, and loops wait for mu.
func (s *Sender) widen() {
	if s.isWide() || s.room() {
		return
	}
	most := s.cfg.Window()
	memory := int64(replica.WindowMemory(most))
	if !s.cfg.Charge(memory) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.Widen(most)
	s.charged = memory
}

func (s *Sender) isWide() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window.IsWide()
}

// shrink gives back the memory of a wide window that is empty.
func (s *Sender) shrink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window.Shrink() {
		s.refundLocked()
	}
}

func (s *Sender) refundLocked() {
	s.cfg.Refund(s.charged)
	s.charged = 0
}

// batch makes a batch of effects.
func (s *Sender) batch(effects []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.beginLocked(member.VerbEffects, 3, len(effects))
	s.window.Bulk(effects)
	s.window.End(b)
	s.batched += len(effects)
}

// beginLocked begins a batch whose verb has n arguments, with size bytes that are of any length.
func (s *Sender) beginLocked(verb string, n, size int) replica.Batch {
	s.made++
	return s.window.Begin(verb, n, size, s.machine.Batch(), s.cfg.UnixMilli(), s.cfg.Monotonic())
}

// fill has pieces of a snapshot logged. It returns for how long nothing is to be done, 0 if it did
// something.
func (s *Sender) fill() time.Duration {
	pieces := snapshotPieces
	if s.rest.Rests() {
		pieces = 1
	}
	for i := range pieces {
		next, delay := s.nextSnapshot()
		if delay > 0 {
			if s.sendAnew() || i > 0 {
				return 0
			}
			return delay
		}
		if !s.fillPiece(next) && i == 0 {
			return s.pollPeriod()
		}
	}
	return 0
}

// nextSnapshot returns the snapshot to go on with, or for how long there is none.
func (s *Sender) nextSnapshot() (next replica.Snapshot, delay time.Duration) {
	now := s.cfg.Monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	next, delay, ok := s.machine.Next(now)
	s.actLocked()
	switch {
	case !ok:
	case !s.roomForSnapshotLocked():
		s.hungry.Store(true)
		delay = replica.Heartbeat
	case !next.Urgent:
		if h := s.all.haste.Load(); h != nil {
			s.rest.Hurry(h.begun, h.deadline)
		}
		s.rest.Look(now, s.strained)
		delay = max(s.pace.Wait(now), s.rest.Wait(now))
		if delay == 0 && s.rest.Rests() && s.window.Bytes() > restWindow {
			s.hungry.Store(true)
			delay = replica.Heartbeat
		}
	}
	s.noteFilling(ok)
	return next, delay
}

// paused reports whether snapshots have to wait.
func (s *Sender) paused() bool {
	now := s.cfg.Monotonic()
	return s.pace.Wait(now) > 0 || s.rest.Wait(now) > 0
}

// pollPeriod is how long a round waits for more changes after one that had some. While snapshots
// rest it is twice as long.
func (s *Sender) pollPeriod() time.Duration {
	if s.fills && s.rest.Rests() {
		return 2 * pollPeriod
	}
	return pollPeriod
}

// strained reports whether this node's loops or the receiver's are strained.
func (s *Sender) strained() bool {
	return s.cfg.Strained() || s.cfg.Monotonic()-time.Duration(s.told.Load()) < toldMemory
}

// noteFilling counts the senders of the node that have a snapshot to send.
func (s *Sender) noteFilling(fills bool) {
	if s.fills == fills {
		return
	}
	if s.fills = fills; fills {
		s.all.filling.Add(1)
	} else {
		s.all.filling.Add(-1)
	}
}

// fillPiece has a piece of a snapshot logged. It reports false if the snapshot has to wait.
func (s *Sender) fillPiece(next replica.Snapshot) bool {
	cursor, done, further := s.logPiece(next.Partition, next.Cursor)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Filled(cursor, done)
	s.actLocked()
	return further
}

// logPiece has a piece of a snapshot logged, from a cursor on. further reports whether there was
// one: while the engine holds the partition for a unit, there may be none.
func (s *Sender) logPiece(p uint16, from uint64) (cursor uint64, done, further bool) {
	e := s.cfg.Engine
	begun := s.cfg.Monotonic()
	before := e.BacklogOf(p, s.feed)
	cursor, done = e.Snapshot(p, s.feed, from, snapshotPiece, s.cfg.UnixMilli())
	more := e.BacklogOf(p, s.feed) - before
	s.pass(max(0, min(more, 2*snapshotPiece)))
	s.worked += s.cfg.Monotonic() - begun
	return cursor, done, done || cursor != from || more != 0
}

// pass counts bytes of a snapshot.
func (s *Sender) pass(n int) {
	s.pace.Spend(int64(n))
	s.moved.Add(int64(n))
	s.ahead += n
}

// rested has later snapshots wait for as long as the work on those of a turn asks for. The turn began
// at the given time.
func (s *Sender) rested(begun time.Duration) {
	now := s.cfg.Monotonic()
	work := s.worked
	if s.batched > 0 { // the bytes of snapshots among all
		n := min(s.ahead, s.batched)
		s.ahead -= n
		work += time.Duration(float64(now-begun-s.worked) * float64(n) / float64(s.batched))
	}
	s.worked, s.batched = 0, 0
	if work > 0 {
		s.rest.Work(now, work, int(s.all.filling.Load()))
	}
}
