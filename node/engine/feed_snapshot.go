package engine

const (
	// snapshotAtOnce is how many items are logged under one lock, and snapshotBytes how many bytes.
	snapshotAtOnce = 64
	snapshotBytes  = 32 << 10
)

// Snapshot logs items of partition p for r, about so many bytes of them, from the cursor on, beginning with 0, and returns where
// to go on. done, with next WalkEnd: all are logged, or p is not fed to r any more. As long as the log is half full it logs
// nothing and next is the cursor: it is to be collected first.
func (e *Engine) Snapshot(p uint16, r Receiver, cursor uint64, atMost int, nowMilli int64) (next uint64, done bool) {
	s := e.shardOf(p)
	for logged := 0; logged < atMost; {
		e.refillFeeds()
		there, room := s.snapshotRoom(p, r)
		if !there {
			return WalkEnd, true
		}
		room = min(room, atMost-logged, snapshotBytes)
		if room <= 0 {
			return cursor, false
		}
		before := room
		cursor, done = e.Walk(p, cursor, snapshotAtOnce, nowMilli, func(item Item) bool {
			if s.targetsOf(p).has(r) {
				s.logItem(targets(0).with(r), item)
			}
			room -= int(item.header.recordLen())
			return room > 0
		})
		if done {
			return WalkEnd, true
		}
		logged += before - room
		logged++ // an empty stretch counts, too
	}
	return cursor, false
}

// snapshotRoom says whether p is fed to r, and how many bytes of a snapshot the log should get.
func (s *shard) snapshotRoom(p uint16, r Receiver) (fed bool, room int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.targetsOf(p).has(r) {
		return false, 0
	}
	return true, s.e.feeds.longest()/2 - s.log(r).bytes
}
