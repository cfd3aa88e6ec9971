package engine

// A section is the keys of one partition in one database, and the number of both: the partition in
// the low 12 bits, the database above. So a partition is its own section of database 0. Each
// section has an index of its own. The shard's lock, holds, copies and feeds are those of the
// partition, with all of its sections.

// Databases is how many databases there are.
const Databases = 16

const databaseShift = 12

// Section is the section of a partition in a database.
func Section(partition uint16, database uint8) uint16 {
	return partition | uint16(database)<<databaseShift
}

// PartitionOf is the partition of a section.
func PartitionOf(section uint16) uint16 { return section & (Partitions - 1) }

// DatabaseOf is the database of a section.
func DatabaseOf(section uint16) uint8 { return uint8(section >> databaseShift) }

// The indexes of a database are a table, by shard and then by partition. All tables have addresses
// from the start, and read as empty indexes. That of database 0 has memory from the start too, that
// of another database from its first key on: it is charged to Stats.Fixed then, and stays.

// tableSize is how many bytes of memory a table takes: whole pages of the system.
const tableSize = Partitions * partitionSize

// partition is the index of a section of the shard. It is not to be written to while its table has
// no memory; only indexes.grow makes something of an empty index, and sees to that.
func (s *shard) partition(section uint16) *partition {
	i := section >> s.e.shardShift
	if section >= Partitions {
		i = section&^(Partitions-1) | PartitionOf(section)>>s.e.shardShift
	}
	return &s.tables[i]
}

// table is the shard's part of the table of a database, whether that has memory or not.
func (s *shard) table(database uint8) []partition {
	return s.tables[int(database)*Partitions:][:len(s.partitions)]
}

// tableInUse is the shard's part of the table of a database; empty if the table has no memory.
func (s *shard) tableInUse(database uint8) []partition {
	if !s.e.hasKeysIn(database) {
		return nil
	}
	return s.table(database)
}

// hasKeysIn reports whether a database has keys, or had some: its table has memory.
func (e *Engine) hasKeysIn(database uint8) bool { return e.tablesInUse.Load()&(1<<database) != 0 }

// hasTable reports whether the table which has the index p, an empty one, has memory. If not, hasTable
// sees to that, and may evict, unless what is taken was to be reserved.
func (s *shard) hasTable(p *partition) bool {
	return isInFirst(&s.e.indexes, p) || s.makeTable(p)
}

func (s *shard) makeTable(p *partition) bool {
	e, number := s.e, tableOf(&s.e.indexes, p)
	if e.hasKeysIn(number) {
		return true
	}
	charged := func() bool { return s.chargeOrChill(tableSize) }
	if !charged() && (s.quiet || !s.await(tableSize, charged)) {
		return false
	}
	e.tablesMu.Lock()
	defer e.tablesMu.Unlock()
	if e.hasKeysIn(number) { // another shard was faster
		e.pool.refund(tableSize)
		return true
	}
	if !e.indexes.grow(uint64(number)*uint64(tableSize), 0, tableSize) {
		e.pool.refund(tableSize)
		return false
	}
	e.fixed.Add(tableSize)
	e.tablesInUse.Or(1 << number)
	return true
}

// section is the one of the record in the cell.
func (c *cells) section(ref handle, h header) uint16 {
	if !h.hasDatabase() {
		return h.partition()
	}
	return Section(h.partition(), c.body(ref, h)[h.keyLen()-1])
}

// putDatabase writes the database behind the key of a record that has one.
func (t Txn) putDatabase(ref handle, h header) {
	if h.hasDatabase() {
		t.s.cells.putDatabase(ref, h, t.section)
	}
}

// Apart, so that Set has only the test in it.
//
//go:noinline
func (c *cells) putDatabase(ref handle, h header, section uint16) {
	c.body(ref, h)[h.keyLen()-1] = DatabaseOf(section)
}

// apart returns a tag by which keys of one name can be told apart in what the databases of a shard
// share: versions, marks, and who waits. In database 0 it is the tag.
func apart(section uint16, tag uint32) uint32 {
	return tag ^ uint32(DatabaseOf(section))*0x9E3779B1
}

// tagApart is the tag, told apart, of a key.
func (s *shard) tagApart(section uint16, key []byte) uint32 {
	return apart(section, tagOf(s.seed.Load(), key))
}

// tagApartOf is the tag, told apart, of the record in the cell.
func (s *shard) tagApartOf(tag uint32, ref handle) uint32 {
	return apart(s.cells.section(ref, s.cells.header(ref)), tag)
}

// putKey writes a key as a record has it, and returns its length there.
func (t Txn) putKey(body, key []byte) (n int) {
	n = copy(body, key)
	if t.section >= Partitions {
		body[n] = DatabaseOf(t.section)
		n++
	}
	return n
}
