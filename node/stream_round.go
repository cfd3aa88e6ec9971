package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
)

const (
	// snapshotPiece is how much of a snapshot is logged at a time, and snapshotPieces how many pieces in a round.
	snapshotPiece  = 64 << 10
	snapshotPieces = 4
	// snapshotAhead is how much of the window a snapshot leaves to the changes.
	snapshotAhead = windowBytes / 4
	// valuePieces is how many pieces of a large value go in a round.
	valuePieces = 4
)

var noMark engine.Mark

// round makes batches of what is logged, and has a piece of a snapshot logged. It says how long to wait then; a kick ends that.
func (s *sender) round() (wait time.Duration) {
	made := s.window.seq
	room := s.collect()
	s.recover() // after a log was found empty, and before that counts
	s.noteBarriers()
	if s.window.seq != made {
		s.last = time.Now()
		s.asleep.Store(false)
	}
	if !room {
		return s.starve()
	}
	delay := time.Duration(0)
	if s.sending == 0 { // or else the snapshot would be far ahead of what it has cost
		delay = s.fill()
	}
	silence := time.Since(s.last)
	switch {
	case delay == 0:
		return 0
	case s.window.seq != made:
		return min(delay, pollPeriod) // more is likely to come, and then need not wake anybody
	case silence >= heartbeat:
		s.heartbeat()
		return 0
	case !s.asleep.Load():
		s.asleep.Store(true)
		return 0 // what was logged before is seen in the next round, what comes later kicks
	}
	return min(delay, heartbeat-silence)
}

// starve waits for acknowledgements, if there is no room in the window.
func (s *sender) starve() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window.room() >= payloadMost {
		return 0
	}
	s.hungry.Store(true)
	return heartbeat
}

// heartbeat makes an empty batch.
func (s *sender) heartbeat() {
	s.batch(nil)
	s.last = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.shrink()
}

// recover sees to what is lost with a log that was full: the changes of partitions, whose feed the engine has stopped, and the
// last words of others.
func (s *sender) recover() {
	if !s.node.engine.LostLog(s.feed) {
		return
	}
	s.lost = s.node.engine.Overflowed(s.feed, s.lost[:0])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breakLocked(errStreamVoid)
	for _, p := range s.lost {
		if f := s.fed[p]; f != nil && (f.state == feedFilled || f.state == feedWhole) {
			again := f.anew()
			again.place = 0 // who cannot follow it has the others first
			s.againLocked(f, again)
		}
	}
}

// collect makes batches of what is logged, once around the shards, and says whether the window has room for more.
func (s *sender) collect() (room bool) {
	out := s.payload[:0]
	for range s.empty {
		if !s.room() {
			break
		}
		shard := s.next
		if s.next++; s.next == len(s.empty) {
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
func (s *sender) collectShard(shard int, out []byte) []byte {
	for s.room() {
		tick := s.tick.Add(1)
		part, more := s.node.engine.Collect(s.feed, shard, out[len(out):], payloadMost-len(out))
		if kind, p, key, size := engine.NextEffect(part); kind == engine.EffectLarge && size == len(part) {
			var began bool
			if out, began = s.beginValue(shard, p, key, out); began {
				return out
			}
		} else if cap(out)-len(out) >= len(part) {
			out = out[:len(out)+len(part)] // it was appended in place
		} else {
			out = append(out, part...)
		}
		if !more {
			s.empty[shard] = tick
			return out
		}
		if len(out) >= payloadMost-smallRest {
			s.batch(out)
			out = out[:0]
		}
	}
	return out
}

// smallRest is what a batch may fall short of its size.
const smallRest = 4 << 10

// room tells whether the window has room for a batch.
func (s *sender) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window.room() >= payloadMost
}

// batch makes a batch of effects.
func (s *sender) batch(effects []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.window
	f := w.begin(member.VerbEffects, 3, s.node.cfg.Group.UnixMilli())
	w.bulk(effects)
	w.end(f)
}

// fill has pieces of a snapshot logged. It returns for how long nothing is to be done, 0 if it did something.
func (s *sender) fill() time.Duration {
	for i := range snapshotPieces {
		now := time.Now()
		s.mu.Lock()
		f, delay := s.nextLocked(now)
		switch {
		case f == nil:
		case s.window.room() < snapshotAhead:
			s.hungry.Store(true)
			delay = heartbeat
		case f.seal == 0 && (len(s.queue) == 0 || s.queue[0].seal == 0): // or else commands wait for it, or for the next one
			delay = s.pace.wait(now)
		}
		s.mu.Unlock()
		if delay > 0 {
			if i > 0 {
				return 0
			}
			return delay
		}
		s.fillPiece(f)
	}
	return 0
}

// beginning is the mark before a snapshot.
func (s *sender) beginning(f *fedPartition) engine.Mark {
	since := f.since
	if t := s.node.view.Load().Table; since == 0 && t != nil {
		since = t.Since[f.number]
	}
	return engine.Mark{Kind: markBegin, Arg: since}
}

// fillPiece has a piece of the snapshot of f logged.
func (s *sender) fillPiece(f *fedPartition) {
	e := s.node.engine
	before := e.Backlog(s.feed)
	next, done := e.Snapshot(f.number, s.feed, f.cursor, snapshotPiece, s.node.cfg.Group.UnixMilli())
	s.pass(max(0, min(e.Backlog(s.feed)-before, 2*snapshotPiece)))
	s.mu.Lock()
	defer s.mu.Unlock()
	f.cursor = next
	if done && s.filling == f {
		e.MarkFeed(f.number, s.feed, engine.Mark{Kind: markSynced})
		f.state, f.logged, s.filling = feedWhole, s.tick.Load(), nil
		if f.seal != 0 {
			s.sayLocked(f)
		}
	}
}

// pass counts bytes of a snapshot.
func (s *sender) pass(n int64) {
	s.pace.take(float64(n))
	s.moved.Add(n)
}

// bucket is what a snapshot may send: rate bytes a second, and what has not been used for a moment.
type bucket struct {
	rate   float64 // 0: no limit
	tokens float64
	filled time.Time
}

func (b *bucket) wait(now time.Time) time.Duration {
	if b.rate <= 0 {
		return 0
	}
	const moment = 50 * time.Millisecond
	b.tokens = min(b.tokens+b.rate*min(now.Sub(b.filled), time.Second).Seconds(), b.rate*moment.Seconds())
	b.filled = now
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens/b.rate*float64(time.Second)) + time.Microsecond
}

func (b *bucket) take(n float64) {
	if b.rate > 0 {
		b.tokens -= n
	}
}
