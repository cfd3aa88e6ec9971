// Package streams executes the commands on streams.
//
//	small  a record: meta, one block                          up to 1,024 bytes and 100 entries, no groups
//	big    a value with parts                                 everything else
//
//	own bytes: meta, counts, the tail block ───────────────────┐
//	plane 0: blocks of entries   <── block number ──┐          │
//	plane 1: what is too long for a block           │          ▼
//	plane 2: leaves  ─┐ ordered map ── first ID ────┘        XADD
//	plane 3: nodes   ─┘  ├── name of a group ─> number ─> group
//	                     ├── name of a consumer ─> number ─> consumer
//	                     ├── group, ID ─> consumer, time, count        what is pending
//	                     └── group, consumer, ID                       the same, by consumer
//
// # Terms
//
//   - meta: the last ID, the greatest deleted one, and how many entries were ever added.
//   - block: up to 100 entries and 4,000 bytes (block.go). Entries with the field names of the block have
//     values only. A deleted entry is dead until its block is written anew.
//   - tail: the last block, which gets the next entry. It has room to grow.
//   - payload: the fields and values of an entry (block_payload.go). One of up to 1,024 bytes stands in a
//     block, any other one is a part. Strings from 64 KiB on are parts of their own, up to 64 of an entry.
//   - owed: said of an entry that is pending, in the order of its consumer.
//   - gone: said of a group that was destroyed and has keys in the map (expire.go).
//   - word: one change in a delta (effects.go). A place is what a receiver has of a snapshot
//     (effects_within.go).
//
// # Layers
//
// A handler uses a stream, which is good for one lock. Its view reads; of a long reply the view is one of a
// pin (pinned). Below it, big has the changes of a value with parts, and notes nothing: receivers apply
// words with the same functions. A handler that has changed a stream calls close, which stores a small
// stream, or notes the words of a big one.
//
// # Invariants
//
//   - Blocks have at least one entry that is not dead, and IDs ascend from block to block. A block's first
//     ID, which its key in the map has, does not change. It may be below that of its first entry.
//   - No entry is above the last ID. XSETID may take that back to the last entry that is there. Then dead
//     entries above it are removed before the next one is added.
//   - A change takes its memory before anything can be seen of it. Deletions take only free cells.
//   - Counts of entries, of groups and of what is pending follow from the words, so receivers count for
//     themselves. What is pending is counted for one consumer at a time (tally): records and tally together
//     are the count.
//   - A receiver in the middle of a snapshot gets only words on what it has. So entries come in their order,
//     and what is pending has its group and its consumer.
//   - Numbers of groups and consumers are not used again. Times are relative to the value's base.
//   - A name is a view of the value as long as nothing changes. Functions that change a group find its name
//     again by its number.
//   - A group that is destroyed is gone at once. What it leaves is freed in slices: by whoever looks the key
//     up, and by the engine's sweep. That is no change that clients could see.
//   - A payload that takes long to copy is made in runs without a lock (entries_stage.go), and uploads are not
//     copied at all.
//
// # What a stream takes
//
// Measured with three fields an entry, names of 11 bytes, values of 8, three IDs a millisecond; beside it
// redis-server 7.0.15, which got the same entries: MEMORY USAGE with SAMPLES 0, and the growth of
// used_memory. Bytes are those beyond values, and beyond names where these differ; charged is with what is
// free on the value's pages. Pending are 200,000 entries, read 100 at a time.
//
//	                                   bytes  charged   MEMORY USAGE   used_memory
//	an entry of 1 M, equal names         7.4      8.1             22            18
//	an entry of 1 M, other names        12.7     13.3             34            25
//	a pending entry, 1 consumer         15.7                     870           114
//	a pending entry, 10 consumers       16.9                     874           114
//	a pending entry, 1,000 consumers    19.0                     879           114
//
// Times are medians of many short measurements, on two processors with about 20 processes that wanted them
// (a push to a list took 180 to 257 ns there, where shape's doc.go says 150): an XADD's share of the lock
// 840 to 980 ns, an entry read 39, an entry made pending 480 to 970, and an XACK of one entry 1,200 in the
// order of IDs, where the marks of the map lead to it, and 2,200 to 2,800 in any order (BenchmarkAdd,
// BenchmarkEach, BenchmarkPending).
//
// XREADGROUP with CLAIM looks through what is pending in its group, unless nothing there is old
// enough (read_idle.go): 47 ns an entry in slices of 2,048, 200,000 in 10 ms (BenchmarkIdleScan,
// load 35, where a scan by eachPending took 86 to 98). An order by the time of delivery, as a third
// key of the map, was tried (BenchmarkPending): a pending entry takes 14.1 bytes more, 29.9 with
// one consumer and 33.2 with 1,000, and an XACK of random IDs 1.3 to 1.9 times as long.
package streams
