package engine

// Version shows whether a key has changed: two versions are equal if nothing was stored under the
// key, deleted, evicted or expired, and its expiry was not changed, between the calls of VersionOf.
// They may differ without a change, rarely: keys share counters, versionsPerShard in a shard.
//
// Counting costs nothing before the first VersionOf in a shard, and a look at a counter in the
// processor's cache after.
type Version struct {
	Era, Count uint32
	Found      bool
}

const versionsPerShard = 1 << 10

// VersionOf returns the version of a key, which need not be there.
func (t Txn) VersionOf(key []byte) Version {
	s := t.s
	if s.versions == nil {
		s.versions = make([]uint32, versionsPerShard)
		s.noting = true
	}
	en, tag := t.lookup(key)
	return Version{s.eras[DatabaseOf(t.section)], s.versions[apart(t.section, tag)%versionsPerShard], t.isThere(en)}
}

// changed notes a change of a key with the tag, whose record is in the cell.
func (s *shard) changed(tag uint32, ref handle) {
	if s.noting {
		s.noteChange(tag, ref)
	}
}

func (s *shard) noteChange(tag uint32, ref handle) {
	s.feeds.endView()
	tag = s.tagApartOf(tag, ref)
	if s.versions != nil {
		s.versions[tag%versionsPerShard]++
	}
	if !s.awaits.none() {
		s.noteAwaited(tag)
	}
	if s.marks.count > 0 {
		s.revoke(tag, ref)
	}
	if s.tells {
		s.tell(ref)
	}
}

// Within returns t for a function that ends with Unlock, which then has no effect: the shard stays
// locked.
func (t Txn) Within() Txn {
	t.within = true
	return t
}
