package engine

// Count returns how many keys the partition has in all databases, including expired ones that are
// not removed yet. After Close it has none.
func (e *Engine) Count(p uint16) (n int) {
	s := e.shardOf(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range uint8(Databases) {
		n += s.count(Section(p, d))
	}
	return n
}

// CountSection returns how many of them a section has.
func (e *Engine) CountSection(section uint16) int {
	if !e.hasKeysIn(DatabaseOf(section)) {
		return 0
	}
	s := e.shardOf(section)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count(section)
}

func (s *shard) count(section uint16) int {
	if len(s.tableInUse(DatabaseOf(section))) == 0 {
		return 0
	}
	return int(s.partition(section).count) - s.values.countUnfinished(section)
}

// Counts sets counts to what Count returns for each partition. It locks each shard once, which takes less time
// than it would to lock one for each partition.
func (e *Engine) Counts(counts *[Partitions]uint32) {
	clear(counts[:])
	for i := range e.shards {
		e.shards[i].addCounts(counts, 0, Databases)
	}
}

// CountsIn sets counts to what CountSection returns for each partition in a database.
func (e *Engine) CountsIn(database uint8, counts *[Partitions]uint32) {
	clear(counts[:])
	if !e.hasKeysIn(database) {
		return
	}
	for i := range e.shards {
		e.shards[i].addCounts(counts, database, database+1)
	}
}

// addCounts adds the keys in the databases from one up to another, which is not meant.
func (s *shard) addCounts(counts *[Partitions]uint32, from, to uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partitions == nil {
		return
	}
	for d := from; d < to; d++ {
		for i, p := range s.tableInUse(d) {
			counts[i*len(s.e.shards)+s.number] += p.count
		}
	}
	for _, at := range s.values.unfinished {
		if section := s.values.sectionOf(at); from <= DatabaseOf(section) && DatabaseOf(section) < to {
			counts[PartitionOf(section)]--
		}
	}
}
