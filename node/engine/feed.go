package engine

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// A partition is fed to receivers: under the shard's lock, and so in the order of the changes, what
// a key holds after each change is logged for them, as effects (feed_effect.go). Each shard has one
// log for each receiver (feed_log.go). Collect takes effects from the log, and Apply follows them
// in another engine. A snapshot of the partition goes into the same log, so a receiver that applies
// the log in order needs no merging.

// Receiver names a receiver of changes by a number below MaxReceivers, which the caller assigns.
type Receiver uint8

// MaxReceivers is how many there may be.
const MaxReceivers = 255

// maxTargets is how many receivers one partition can have: its follower and the target of its move,
// and those of the previous table while the table changes.
const maxTargets = 8

// Mark is a word from the sender to the receiver, in the order of the effects of a partition. Kind
// 0 is none.
type Mark struct {
	Kind uint8
	Arg  uint64
}

// targets are the receivers of a partition, each in a byte, plus one, without gaps from the lowest
// on.
type targets uint64

func (t targets) has(r Receiver) bool {
	for ; t != 0; t >>= 8 {
		if t.first() == r {
			return true
		}
	}
	return false
}

func (t targets) first() Receiver { return Receiver(t&0xFF - 1) }

func (t targets) with(r Receiver) targets {
	if t>>(8*(maxTargets-1)) != 0 {
		panic("BUG: a partition is fed to too many")
	}
	return t<<8 | targets(r) + 1
}

func (t targets) without(r Receiver) (left targets) {
	for ; t != 0; t >>= 8 {
		if t.first() != r {
			left = left.with(t.first())
		}
	}
	return left
}

// shardFeeds is what a shard feeds to receivers.
type shardFeeds struct {
	s       *shard
	unit    *unit      // that gathers what is logged of its partition, until Unlock; nil: none does
	own     unit       // that unit
	nested  int        // how often BeginUnit was called meanwhile, and not EndUnit
	thirsty bool       // refillFeeds is to be called when there is time
	view    handle     // record that Resize returned a view of, if something is fed
	targets []targets  // by partition, nil before the first Feed
	fed     int        // partitions that have targets
	logs    []*feedLog // by Receiver, nil where none is open
}

// receiver is one that is open.
type receiver struct {
	number     Receiver
	wake       func()
	overflowed [Partitions / 64]atomic.Uint64
	named      atomic.Bool // overflowed names some
	lost       atomic.Bool // a log, with all that was in it

	snapshotsMu sync.Mutex // innermost
	snapshots   map[uint16]*snapshot

	mu      sync.Mutex // before any shard's
	readers []reader   // by shard
}

// OpenFeed begins to have logs for r, which is not open. wake is called, under a shard's lock, when
// a log of r gets its first bytes since it was last collected, and when it overflows: it must not
// block or call the engine.
func (e *Engine) OpenFeed(r Receiver, wake func()) {
	e.feeds.prepare()
	to := &receiver{number: r, wake: wake, readers: make([]reader, len(e.shards))}
	if !e.feeds.receivers[r].CompareAndSwap(nil, to) {
		panic("BUG: a feed is open already")
	}
	for i := range e.shards {
		s := &e.shards[i]
		l := &feedLog{to: to, blocks: &e.feeds}
		s.mu.Lock()
		if int(r) >= len(s.feeds.logs) {
			s.feeds.logs = slices.Grow(s.feeds.logs, int(r)+1-len(s.feeds.logs))[:r+1]
		}
		s.feeds.logs[r] = l
		s.mu.Unlock()
	}
}

// CloseFeed forgets the logs of r and all that is fed to it. Nothing else may be done with r
// meanwhile but Collect.
func (e *Engine) CloseFeed(r Receiver) {
	to := e.feeds.receivers[r].Swap(nil)
	if to == nil {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		s.feeds.stop(r, nil)
		s.feeds.logs[r].drop()
		s.feeds.logs[r] = nil
		s.mu.Unlock()
		to.readers[i].drop(&e.feeds)
	}
	if !e.feeds.open() {
		e.feeds.trim(0)
	}
}

// log is the log for r; nil if that is not open.
func (f *shardFeeds) log(r Receiver) *feedLog {
	if int(r) >= len(f.logs) {
		return nil
	}
	return f.logs[r]
}

// targetsOf are the receivers of a partition, or of that of a section.
func (f *shardFeeds) targetsOf(p uint16) targets {
	if f.targets == nil {
		return 0
	}
	return f.targets[PartitionOf(p)>>f.s.e.shardShift]
}

func (f *shardFeeds) setTargets(p uint16, t targets) {
	if f.targets == nil {
		f.targets = make([]targets, len(f.s.partitions))
	}
	at := &f.targets[p>>f.s.e.shardShift]
	if *at == 0 && t != 0 {
		f.fed++
	} else if *at != 0 && t == 0 {
		f.fed--
	}
	if f.mayGather() {
		f.forgetSides(p, t)
	}
	*at = t
	f.noteFeeding()
}

// noteFeeding notes whether anything is fed. While a unit gathers, that does not end: Unlock must find
// the unit.
func (f *shardFeeds) noteFeeding() {
	f.s.feeding = f.fed > 0 || f.unit != nil
	f.s.noteDuties()
}

// Feed logs the mark for r, and from then on changes of p. If p is fed to r already, it only logs
// the mark. It has no effect if r is not open. It waits for a unit of p that is being applied.
func (e *Engine) Feed(p uint16, r Receiver, mark Mark) {
	e.refillFeeds()
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units.await(p)
	if s.feeds.log(r) == nil {
		return
	}
	if t := s.feeds.targetsOf(p); !t.has(r) {
		s.feeds.setTargets(p, t.with(r))
		s.feeds.dropSnapshot(p, r)
	}
	s.feeds.logMark(p, r, mark)
}

// Unfeed logs the mark as the last of p for r and stops. If the log overflows before it is
// collected, the mark is lost (LostLog).
func (e *Engine) Unfeed(p uint16, r Receiver, mark Mark) {
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.feeds.targetsOf(p).has(r) {
		return
	}
	s.feeds.logMark(p, r, mark)
	s.feeds.setTargets(p, s.feeds.targetsOf(p).without(r))
}

// MarkFeed logs a mark, behind the unit of a hold if there is one. It has no effect if p is not fed to
// r.
func (e *Engine) MarkFeed(p uint16, r Receiver, mark Mark) {
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.feeds.unitOf(p); u == nil {
		s.feeds.logMark(p, r, mark)
	} else if s.feeds.targetsOf(p).has(r) {
		u.marks = append(u.marks, lateMark{r, mark})
	}
}

func (f *shardFeeds) logMark(p uint16, r Receiver, mark Mark) {
	if mark.Kind != 0 && f.targetsOf(p).has(r) {
		f.log(r).put(f.s, markEffect(p, mark), int64(mark.Arg), nil)
	}
}

// stop stops what the shard feeds to r, and notes which partitions that were, if asked to.
func (f *shardFeeds) stop(r Receiver, note func(p uint16)) {
	for i, t := range f.targets {
		if !t.has(r) {
			continue
		}
		p := uint16(i<<f.s.e.shardShift | f.s.number)
		f.setTargets(p, t.without(r))
		if note != nil {
			note(p)
		}
	}
}

// overflow empties a log of the shard, which has become too long, and stops its feeds.
func (f *shardFeeds) overflow(l *feedLog) {
	to := l.to
	l.drop()
	f.stop(to.number, to.stopped)
	to.lost.Store(true)
	to.wake()
}

// stopped notes that the feed of a partition was stopped, because of what could not be logged.
func (to *receiver) stopped(p uint16) {
	to.overflowed[p/64].Or(1 << (p % 64))
	to.named.Store(true)
}

// LostLog reports whether a log of r was full, and was emptied, since the last call. Overflowed
// names the partitions that were fed then. There may be none: the last effects of a partition are
// in a log after its feed has ended. Ask Overflowed behind it.
func (e *Engine) LostLog(r Receiver) bool {
	to := e.feeds.receivers[r].Load()
	return to != nil && to.lost.Load() && to.lost.Swap(false)
}

// Overflowed appends the partitions whose feed to r was stopped, because a log was full or a unit too
// long, since the last call. The caller feeds them again and takes a new snapshot.
func (e *Engine) Overflowed(r Receiver, dst []uint16) []uint16 {
	to := e.feeds.receivers[r].Load()
	if to == nil || !to.named.Load() {
		return dst
	}
	to.named.Store(false)
	for i := range to.overflowed {
		if to.overflowed[i].Load() == 0 {
			continue
		}
		for word := to.overflowed[i].Swap(0); word != 0; word &= word - 1 {
			dst = append(dst, uint16(i*64+bits.TrailingZeros64(word)))
		}
	}
	return dst
}

// Backlog is how many bytes the logs of r have.
func (e *Engine) Backlog(r Receiver) (bytes int64) {
	to := e.feeds.receivers[r].Load()
	if to == nil {
		return 0
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for i := range e.shards {
		bytes += int64(to.backlogOf(&e.shards[i]))
	}
	return bytes
}

// BacklogOf is how many bytes the log of r has that changes of p go into.
func (e *Engine) BacklogOf(p uint16, r Receiver) int {
	to := e.feeds.receivers[r].Load()
	if to == nil {
		return 0
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.backlogOf(e.shardOf(p))
}

func (to *receiver) backlogOf(s *shard) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.feeds.log(to.number); l != nil && l.to == to {
		return l.bytes + to.readers[s.number].left
	}
	return to.readers[s.number].left
}
