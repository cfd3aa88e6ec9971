package engine

// A mark says that a watcher is to be told when a key changes, however that comes: by a command, by expiry, by
// eviction, or by a delta of its value. The first change removes the mark. Only the owner of the keys marks
// them; what happens to whole partitions (Drop, Reset) is not told: the caller tells all watchers then.
//
// A mark has the tag of its key, told apart, and no name, so it may be told for another key of the same tag. What the
// watcher is told is the number that it has given with the mark, and the key that has changed.
//
// The marks of a shard lie in small tables, so that none takes long to grow under the lock. A full table drops
// any of its marks, which counts as a change.

const (
	// MaxMarks is how many marks an engine keeps, at most.
	MaxMarks = 1 << 20
	// marksPerTable is how many of these a table has, in slots for 4/3 as many at least.
	marksPerTable = 512
	firstSlots    = 16
	markSize      = 16
)

// marked is one of them; the zero value is a free slot.
type marked struct {
	hash    uint64 // what the watcher is told
	tag     uint32
	watcher uint16 // 0: none
}

// marks are those of a shard.
type marks struct {
	tables []markTable // nil before the first mark; a power of two
	count  int
	keys   int // that have marks: hashes that differ
	dice   uint32
}

// markTable is a hash table with linear probing.
type markTable struct {
	slots []marked // a power of two; nil: none
	count int
}

// Watch is what Mark was given.
type Watch struct {
	Watcher uint16 // not 0
	Hash    uint64
}

// Mark has Config.Revoke called for the next change of a key, once. It reports false if there is no memory.
func (e *Engine) Mark(section uint16, key []byte, w Watch) (ok bool) {
	s := e.shardOf(section)
	for {
		s.mu.Lock()
		if s.marks.tables == nil {
			s.marks.tables = make([]markTable, powerFrom(max(1, MaxMarks/marksPerTable/int64(len(e.shards)))))
		}
		tag := s.tagApart(section, key)
		t := s.marks.table(tag)
		if need := t.lacks(); need == 0 || t.count >= marksPerTable {
			s.put(t, marked{w.Hash, tag, w.Watcher})
			s.mu.Unlock()
			return true
		}
		s.mu.Unlock()
		if !e.growMarks(s, tag) {
			return false
		}
	}
}

// growMarks makes a table for a tag larger.
func (e *Engine) growMarks(s *shard, tag uint32) bool {
	s.mu.Lock()
	need := s.marks.lacks(tag)
	s.mu.Unlock()
	if need == 0 {
		return true
	}
	if !e.Charge(need) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks.lacks(tag) == need {
		s.marks.table(tag).grow()
		return true
	}
	defer e.Refund(need) // somebody else was faster
	return true
}

// ForgetMarks forgets all marks, without telling anybody.
func (e *Engine) ForgetMarks() {
	for i := range e.shards {
		e.Refund(e.shards[i].forgetMarks())
	}
}

func (s *shard) forgetMarks() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.marks.tables {
		bytes += int64(len(s.marks.tables[i].slots)) * markSize
	}
	s.marks.tables, s.marks.count, s.marks.keys = nil, 0, 0
	s.noteDuties()
	return bytes
}

// Marks returns how many marks there are, and how many keys have some.
func (e *Engine) Marks() (marks, keys int) {
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		marks += s.marks.count
		keys += s.marks.keys
		s.mu.Unlock()
	}
	return marks, keys
}

// TellChanges has Config.Changed called for each change of a key of a partition that is no copy, or not any
// more.
func (e *Engine) TellChanges(on bool) {
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		s.tells = on
		s.noteDuties()
		s.mu.Unlock()
	}
}

// As has what t changes count as done by an actor, until Unlock. What expires or is evicted meanwhile does not.
func (t Txn) As(actor uint64) {
	t.s.act(actor)
}

func (s *shard) act(actor uint64) {
	s.actor, s.ending = actor, s.ending || actor != 0
}

// tell calls Config.Changed for the record in the cell, as announce calls Config.Announce.
func (s *shard) tell(ref handle) {
	h := s.cells.header(ref)
	if s.copies.has(h.partition()) || h.isRoot() && s.values.isHidden(ref, h) {
		return
	}
	s.e.changed(s.cells.key(ref), s.actor)
}

// put adds a mark, unless it is there.
func (s *shard) put(t *markTable, m marked) {
	known := false // the key has a mark
	i := t.home(m.tag)
	for ; t.slots[i].watcher != 0; i = t.next(i) {
		if at := &t.slots[i]; at.tag == m.tag && at.hash == m.hash {
			if known = true; at.watcher == m.watcher {
				return
			}
		}
	}
	if t.count >= marksPerTable {
		s.dropMark(t)
		known = t.has(m)
		for i = t.home(m.tag); t.slots[i].watcher != 0; {
			i = t.next(i)
		}
	}
	if !known {
		s.marks.keys++
	}
	t.slots[i] = m
	t.count++
	s.marks.count++
	s.noting = true
}

// has reports whether there is a mark on the same key.
func (t *markTable) has(m marked) bool {
	for i := t.home(m.tag); t.slots[i].watcher != 0; i = t.next(i) {
		if at := &t.slots[i]; at.tag == m.tag && at.hash == m.hash {
			return true
		}
	}
	return false
}

// dropMark drops any mark of a full table.
func (s *shard) dropMark(t *markTable) {
	s.marks.dice = s.marks.dice*1664525 + 1013904223
	i := int(s.marks.dice>>8) & (len(t.slots) - 1)
	for t.slots[i].watcher == 0 {
		i = t.next(i)
	}
	m := t.slots[i]
	s.removeMark(t, i)
	s.e.revoke(Watch{m.watcher, m.hash}, nil, 0)
}

// revoke removes the marks with the tag, told apart, of the record in the cell, and tells those who have set them.
func (s *shard) revoke(tag uint32, ref handle) {
	t := s.marks.table(tag)
	if t.count == 0 {
		return
	}
	for i := t.home(tag); t.slots[i].watcher != 0; {
		m := t.slots[i]
		if m.tag != tag {
			i = t.next(i)
			continue
		}
		s.removeMark(t, i) // another one may take its place
		s.e.revoke(Watch{m.watcher, m.hash}, s.cells.key(ref), s.actor)
	}
}

// removeMark frees the slot i. It moves those behind it that would not be found any more.
func (s *shard) removeMark(t *markTable, i int) {
	mask, m := len(t.slots)-1, t.slots[i]
	for j := t.next(i); t.slots[j].watcher != 0; j = t.next(j) {
		if home := t.home(t.slots[j].tag); (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = marked{}
	t.count--
	if !t.has(m) {
		s.marks.keys--
	}
	if s.marks.count--; s.marks.count == 0 {
		s.noteDuties()
	}
}

// lacks returns how many bytes the table for a tag needs before it takes another mark.
func (m *marks) lacks(tag uint32) int64 {
	if m.tables == nil {
		return 0
	}
	return m.table(tag).lacks()
}

func (m *marks) table(tag uint32) *markTable { return &m.tables[int(tag)&(len(m.tables)-1)] }

// home is where the search for a tag begins.
func (t *markTable) home(tag uint32) int {
	return int(tag*0x9e3779b1>>8) & (len(t.slots) - 1)
}

func (t *markTable) next(i int) int { return (i + 1) & (len(t.slots) - 1) }

// lacks returns how many bytes the table needs before it takes another mark; 0: none.
func (t *markTable) lacks() int64 {
	switch n := len(t.slots); {
	case n == 0:
		return firstSlots * markSize
	case t.count+1 > n*3/4:
		return int64(n) * markSize
	}
	return 0
}

// grow doubles the table.
func (t *markTable) grow() {
	old := t.slots
	t.slots = make([]marked, max(firstSlots, 2*len(old)))
	for _, m := range old {
		if m.watcher == 0 {
			continue
		}
		i := t.home(m.tag)
		for t.slots[i].watcher != 0 {
			i = t.next(i)
		}
		t.slots[i] = m
	}
}
