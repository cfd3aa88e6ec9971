package engine

// Event is what happens to a key other than by a command on it, and the creation of a key.
type Event uint8

// The events that Config.Announce is called for.
const (
	Expired         Event = iota // the key
	Evicted                      // the key
	ElementsExpired              // elements of its value have expired
	Emptied                      // the last of them: the key was deleted
	Created                      // the key, if AnnounceNew says so
)

// AnnounceNew says whether Config.Announce is to be called for new keys, which costs something for each.
func (e *Engine) AnnounceNew(on bool) { e.announcesNew.Store(on) }

// announce calls Config.Announce for a record. It does not for those of copies, whose owner does, nor for
// values that have no key yet.
func (s *shard) announce(ref handle, event Event) {
	if s.e.announces == nil {
		return
	}
	h := s.cells.header(ref)
	if s.copies.has(h.partition()) || h.isRoot() && s.values.isHidden(ref, h) {
		return
	}
	s.e.announces(s.cells.section(ref, h), s.cells.key(ref), event)
}

// isHidden reports whether a value is built aside, or is not whole.
func (v *values) isHidden(ref handle, h header) bool {
	return v.isUnfinished(ref, h) || v.s.cells.head(v.s.cells.headOf(ref, h)).aside
}

// AnnounceExpired announces that elements of the value have expired; gone: they were the last ones, and the
// key will be deleted.
func (v Parts) AnnounceExpired(gone bool) {
	s, root := v.t.s, v.head().root
	s.announce(root, ElementsExpired)
	if gone {
		s.announce(root, Emptied)
	}
}
