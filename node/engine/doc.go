// Package engine stores the keys and values of a node: in memory outside the Go heap, within a hard
// limit, and without heap allocations. It knows nothing of networks, protocols or commands.
//
//	Engine ─┬─ shard (a lock) ─┬─ section ── index: buckets of tags and handles ───┐
//	        │   partition mod  ├─ section ── ...                                   │ handle
//	        │   shards         ├─ small queue: a log of pages  <───────────────────┤
//	        │                  │     header │ expiry? │ key │ value │ next record  │
//	        │                  ├─ main queue: pages by class of cells, a clock each <
//	        │                  │     cell: header │ expiry? │ key │ value
//	        │                  │     cell: header │ expiry  │ ●──────────┐ (large)
//	        │                  │     root: header │ expiry │ key │ ●────> head ──> parts (parts.go)
//	        │                  ├─ pages of index cells, by class         │ offset
//	        │                  ├─ pages of heads, and of parts, by class │
//	        │                  └─ ghosts: what was evicted               │
//	        ├─ pool: the budget, the pages that no shard has, huge pages │
//	        └─ largeSpace: bodies too big for a cell <───────────────────┘
//
// A record enters the main queue while there is memory, and the small queue when memory is full
// (evict_small.go). It leaves the small queue for the main one if it was used, and for good if not.
// It leaves the main queue when a hand finds it unused (evict_clock.go). Both queues are in the
// shard of the record's section. Memory moves between sizes and shards in pages: the hand that is
// furthest behind in time gives, and sparse pages are emptied into others (page_compact.go).
// evict_room.go has the order in which victims are looked for, budget.go enforces the limit. Under its
// lock a command evicts records of the class that it needs a cell of. Pages are emptied in slices
// (evict_slice.go), by who makes room without a shard of his own, and behind commands that took one of
// the few pages that are kept free (evict_ahead.go).
//
// # Terms
//
//   - section: the keys of one partition in one database (section.go). A partition is its own section of
//     database 0. Keys of one name in several databases have only their tag and their lock in common.
//   - record: an item as stored; its body is the key directly followed by the value.
//   - cell: a piece of a page. All cells of a page have one size, their class: steps of 8 bytes up
//     to 512, then sixteen classes a doubling. A cell holds a record, a part, a head, or a piece of
//     an index. In the small queue a cell is as long as its record.
//   - handle: the name of a cell, its offset in its window in grains of 8 bytes. Memory outside the
//     Go heap contains no Go pointers.
//   - window: a part of the reserved addresses that 32 bits name in grains: 32 GiB. There is one up
//     to a limit of 16 GiB. Each shard has its pages in one window, so a key takes no more bytes
//     where there are many. Only with more windows than shards do grains grow. Shards of one window
//     can have at most 32 GiB; when that is full they make room among themselves.
//   - tag: the low half of the seeded hash of a key. Its low bits choose the bucket.
//   - root, head, part: what a value with parts consists of, see below.
//   - extent: a range of addresses for one large body. The body has one owner (a record, a part, or
//     the caller that stages it) and any number of pins, which keep it unchanged for readers without
//     a lock.
//   - crowd: the second index of a section that is flooded with keys of like tags.
//   - table: the indexes of a database, one for each partition.
//   - position: a tag with its bits reversed, the order in which Walk goes. It names the same place
//     in an index of any size on any node, so a cursor outlives growth and moves.
//
// # Types
//
// A shard is what its lock protects, and the operations of a Txn. Each of its subjects is a type of
// its own with the fields that only it changes, embedded by value: indexes (the sections'
// indexes), dropped (doomed ones), slabs (pages of cells), small and clocks (the two queues),
// ghosts, copies, values (those with parts), takings (keys to which pops may put something back) and
// shardFeeds (logs for receivers). They refer to
// their shard for what concerns several of them. cells is shared by all shards: it reads records,
// parts and buckets by their handles.
//
// # Invariants
//
//   - Database 0 takes no byte for the others. The table of another database, 80 KiB, is made and charged
//     with the first key in it, stays, and counts as Fixed. If there is no memory for the table, that key
//     is refused, however small it is.
//   - Memory is charged to pool.used before it is touched, and refunded after it was given back to
//     the system; used never exceeds max. Indexes, records, bookkeeping, free cells and pages kept
//     for reuse all count. The part on the Go heap is Fixed.
//   - A shard can always have ownPages: those that it lacks are reserved, and used and reserved
//     together do not exceed max. What nobody can evict (staged and pinned bodies, what the caller
//     charges, logs) is refused beyond reclaimable. So small records find memory in each shard,
//     and nobody who holds a shard waits for memory that others hold.
//   - A live record is in exactly one index: that of its section, which its header and the byte behind
//     its key name, or a doomed index that was that section's until it was dropped. So a record can be
//     found from its cell, to be evicted or moved. Only between newRecord and the insertion is it in none.
//   - A page bears the mark of the shard that has it. A page whose mark is of an older generation
//     is left to the Reset that ended that generation; nobody else touches it.
//   - A dropped partition, or section, is empty at once. Its records are no keys any more, and no eviction or
//     expiry of them is counted; but they count as memory (Values, Volatile, Index, Used) until Drop, or
//     after Forget the sweep, has freed them.
//   - The cell of a free record has TypeNone in its first word. Cells from page.bump on were never
//     used. In the small queue a dead record keeps its lengths, so that the next one is found.
//   - Only what is in use can be written (arena.grow, arena.shrink): pages that somebody has, the
//     charged pages of bodies, blocks of logs. The rest, and what was given back, can be read, so that
//     Touch may look anywhere. If the system commits no more memory, that counts as none in the
//     budget: others are evicted, or the command fails.
//   - Resident memory is no more than what is charged: a block of pages becomes huge when all of it
//     is charged (page_huge.go).
//   - Buckets of a chain are dense: all but the last are full. Above maxChain of them entries go to
//     the crowd, so no operation meets more than a few hundred entries, whatever keys are chosen.
//     Only without memory do chains grow on.
//   - A part of a reply that is gathered is a body that never gets a key (StageReply).
//   - A pinned large body is not written to: a new value goes to another extent. A body without
//     owner and pins is dead: its memory goes back to the system in pieces, outside the shards'
//     locks, and the budget gets each piece after that. A few dead bodies of up to 128 KiB stay
//     warm, charged, for the next body of about their size (large_warm.go).
//   - Making room may evict or move any record of the shard but the one being resized and the roots
//     that are spared. So it may change what indexes contain, but never the number of buckets.
//     A caller that keeps an entry meanwhile compares shard.changes.
//   - What must not fail halfway takes its memory first: a shard keeps a spare bucket for the next
//     insertion, and Reserve takes the cells of values with parts.
//
// # Locks
//
// A shard's mutex protects the shard, its partitions, pages and cells. It is held for one Txn, or
// for a slice of background work: 128 records that expire, are evicted or move take up to 50 µs. A
// goroutine that holds one shard only tries to lock others, to take memory from them; only lockAll
// takes all, in ascending order, and holds none before. resetMu and limitMu are outermost. pool.mu
// and largeSpace.mu are innermost, but that a mapping.Space locks its own mutex under them, under
// feeds.mu and under tablesMu. Staging a large value and releasing a pin hold no shard; to make
// room they lock one shard after the other. Touch takes no lock at all: it only reads, and relies
// on nothing that it reads (index_touch.go). page.owner, clocks.coldStamp and the pool's counters
// are atomics that others read as hints, and check under the lock.
//
// A receiver's mutex (feed.go) stands before the shards'; feeds.mu and receiver.snapshotsMu are
// innermost. A receiver's wake function, a Taker, a Lacker, Servers.Serve and the functions of a Form
// are called with a shard held.
//
// # Holds
//
// A partition, with all its sections, can be held for longer than a lock (hold.go). The shard's
// lock protects the list of holds, and whoever locks a partition looks at it. In a held partition
// no record expires or is evicted, but for the holder at the time when the hold began. Compaction
// may move the records.
//
// # Feeds
//
//   - A partition is fed, copied and snapshotted with all its sections. An effect on a key names its
//     section.
//   - Before a shard is unlocked, the log has what each changed key of a fed partition holds.
//     Deletes are logged at once, whatever the reason. A record that moves between cells has not
//     changed. Without a feed this costs a test of shard.noting at each change, of
//     shard.feeding at its end, and of shard.ending in Unlock.
//   - shardFeeds.view is 0, or a record of which Resize returned a view in this Txn. Its value is logged
//     before anything else is changed, and in Unlock. No shard is unlocked with a view.
//   - An effect is in a log wholly or not at all. A log that overflows is emptied, and the shard
//     stops feeding its receiver.
//   - A block of a log is full, but for the last one and for those in front of a long unit: that is
//     not copied into the log, which gets its blocks.
//   - Blocks of logs are charged from before they are written to until they are given back. Logging
//     takes from a reserve and evicts nothing, since eviction itself logs.
//
// # Values with parts
//
// A big hash, list, set, sorted set or stream does not fit a record. Its record, the root, names a
// head, and the head finds the parts by plane and number through a directory (parts.go has the
// picture, parts_numbers.go the directory). The types of values build tables and trees from parts.
// The engine knows no type; each type gives it a Form: functions that apply, dump and expire.
//
//   - A part names its head, plane and number in its first word, and so does a node of a directory.
//     So a part is found both ways: compaction moves it and corrects the one handle that names it.
//     References to a part are numbers. A head never moves.
//   - head.bytes is the memory of the head, the parts with their extents, and the directories, with
//     what is unused of their cells. Sums.Parts is the sum over all heads, doomed ones included.
//   - Only roots have uses. All roots of a shard stand in a ring, the roots' clock
//     (evict_roots.go), which advances by the bytes behind each root: a round takes as long as one
//     of the pages' clocks that frees as much. With another policy than AllKeys roots are judged
//     like other records.
//   - A value dies in one step: its root is freed, and its head joins values.doomed. The parts are
//     freed in slices, by Sweep, and by makeRoom before it chooses a victim. Dooming a value counts
//     as a gain (shard.gains), since the next call of makeRoom frees memory.
//   - A command calls Reserve before its first change. Only Reserve makes room; it spares the roots
//     that it is told. What the command takes until Unlock comes from free cells and evicts
//     nothing, so no command fails halfway. While cells are reserved, compaction leaves that many
//     free and moves nothing to another class: two classes could otherwise trade pages for ever.
//   - A value has an incarnation, which its effects name. A receiver that has another incarnation
//     under the key, or none, applies nothing and asks for the key (Lacker).
//   - A value is unfinished from the begin effect of its snapshot to the last delta
//     (parts_unfinished.go). Meanwhile its key is absent for commands, walks and counts, but its
//     memory counts. If the snapshot does not end, the value is removed when its sender is shut
//     out, or when the partition is no copy any more.
//   - A value gets another key in one step (Rename, parts_rename.go). A big value that a command makes in
//     slices is built aside, unfinished and without a key that clients could name, and gets its key
//     when it is complete. Its effects are in no unit and no snapshot; a receiver that lacks it when
//     it is renamed asks for the new key.
//   - Changes go into the log as deltas in the type's own words (Parts.Note), a snapshot as a begin
//     effect and deltas of about 8 KiB (Form.Dump), between other effects. An element's latest
//     word holds, so Form.Apply must be idempotent for each element.
//   - The effects of several changes form a unit (BeginUnit): one effect that contains the others,
//     so that a receiver has all or none of them. So do all those of a hold (HoldUnit). Above 512
//     KiB the feed of that partition ends instead, and begins anew. A receiver applies a unit in
//     slices; feed_unit_apply.go says why nobody sees its middle.
//   - Times inside a value are relative to its base (Parts.Base), the only word of a value that is
//     shifted between the clocks of nodes.
//   - Who reads a whole value in slices pins it (PinValue, parts_pin.go): each part is kept for the
//     pin before its first change, unless the pin has read it. A type reads parts with Part and
//     changes them with Edit, Resize, Add and Free, which keep them. A pinned value is not evicted.
//     If it dies, it is freed after its last pin.
//   - A type whose elements are named by position has Form.Within. While its snapshot goes to a
//     receiver, that has exactly the elements in front of the snapshot's place. Within says what of
//     a delta concerns those, and where the snapshot goes on then; the rest of the delta is not
//     sent, since a later chunk has it.
//
// # Formats
//
// Bit 63 of a header, and of an effect's word, says that the key's last byte is its database. It is not
// set in database 0: while no other database is used, all effects are such as older members know. Where
// a partition has keys in database 0 only, a clear of that database is one of the partition. Type 7 in a
// header says that the value tells its type, so types beyond stream need no bit. An effect's
// word has its length and five bits of kind; all kinds from begin on have the same layout, so an
// engine can tell an effect of a newer one from a broken stream (UnknownEffect). The caller of
// CheckEffects also says which types it knows. The cluster's level sees to it that no member is
// sent a kind or a type that it does not know (exec.Type.Level). A partition is dumped as effects:
// a snapshot applied to an empty partition restores it.
//
// # Copies
//
// Nothing in a copy expires by this engine's clock (isDue): the owner's deletes come. When memory is
// needed, records of spare copies go before all others (evict_copies.go), unused ones first; the
// memory of dropped partitions and dead values that is not freed yet goes before those
// (evict_spare.go). While any of that is left, new records enter the main queue and the small one
// rests.
//
// A record that comes from another engine brings its uses along. In a partition that is no copy it
// enters like any new record.
//
// # What was tried and is not here
//
// Hit ratios come from simulations (bench/engine/sim), in points of 100 reads, with memory for a
// tenth of the keys' bytes.
//
//   - Second chance alone: 2 to 8 below S3-FIFO on Zipf. LRU: 2 to 9 below it.
//   - S3-FIFO as published, with a tenth for the small queue: 8 below LRU where a popular window
//     moves over the keys, 3 where the working set changes at once. With a share that follows what
//     returns: 0.5 below LRU at worst, nowhere below S3-FIFO.
//   - Two uses to leave the small queue instead of one: up to 2.7 less where the set shifts, 0.15
//     more elsewhere. An overwrite counted as a use: 1.5 less where other keys are written than
//     read. No ghosts: 10 to 29 less where the set shifts.
//   - SIEVE and W-TinyLFU: 11 and 43 below LRU on the moving window. ARC: up to 2 below S3-FIFO.
//   - Eight classes a doubling: 20 bytes of rounding for a record of 268. Cells of larger classes
//     for new records too, and not only for those of sparse pages: no gain.
//   - 32 shards in 512 MiB: 83 % of live data where sizes change; 8 shards: 88 %. See ShardsFor.
//   - Smaller pages where the limit is low (pagesPerShard of 512: 16 KiB at 96 MB, 8 shards). Collections
//     of all sizes: 86 % of live data instead of 49 to 53 (256: 77 %; 4 shards: 70 %; BenchmarkLimit of the
//     node), since each shard has one nearly empty page for each class; in the same processor time. But
//     strings of 5,000 bytes filled 60 % of the limit instead of 90, and those of 9,000 bytes 71 instead of
//     95: they are too long for a cell of a quarter of a page, and take whole pages of the system.
//   - Huge pages from the first touch: as fast, but memory is resident before it is charged, and
//     comes back unasked after it was released.
//   - Parts that move to cells of larger classes, as records do: compaction led them from class to
//     class, and their values grew by a quarter each time.
//
// # Time
//
// The engine has no clock: callers pass the time in unix milliseconds. A node's time runs with the
// monotonic clock of its start, and with the time in which the machine is suspended. It approaches
// the system's clock by a hundredth at most while records expire, and at once while none does
// (internal/netloop). So when the system's clock jumps an hour ahead, nothing expires early: a time
// to live is off by at most 1 % until the node has caught up, and an absolute time (EXPIREAT) by
// what is left of the jump.
//
// An expired record is gone at once for every command, if its partition is no copy. Its memory is
// free after a round of the sweep, seven seconds. The sweep passes pages on which nothing is due (page.soonest). With
// ten million keys of 64 bytes it takes 1.2 % of a processor when they expire within an hour, and 0.1 %
// when none expires; when all expire at one moment it takes 2.4 s of processor time, in 6.8 s
// (BenchmarkSweep, 2 processors busy with other work).
//
// # What is simple on purpose
//
// Sparse pages of indexes are gathered, in slices, when an eighth of all would go
// (index_gather.go), by walking all indexes of a shard. Pages of records are compacted only to make
// room. With VolatileTTL the clocks look for the record that expires first among the next sixteen,
// and the small queue is only emptied. Heads do not move, so a page of heads is free only when its
// last value is. A value with parts enters the roots' clock at once, without a trial in the small
// queue. A directory keeps its nodes until the highest numbers are freed.
package engine
