// Package shape has the three forms that the values of types other than string are built of: packed,
// table and tree. It knows no command and no type: a hash is a table of fields and values, a sorted
// set a ranked tree of its members, a list a tree without ranks.
//
//	record: header │ key │ packed value          small: up to 1,024 bytes and 128 entries
//	record: header │ key │ root ─> head          big: a value with parts (node/engine/parts.go)
//	                                ├─ plane of blocks  ─┐
//	                                │                    ├ Table: element by key, any element
//	                                ├─ plane of strings ─┤
//	                                │                    ├ Tree: entry by position, or in order
//	                                ├─ plane of leaves  ─┤
//	                                ├─ plane of nodes   ─┤
//	                                └─ plane of buckets ─┘ of a ranked tree's index
//
// # Terms
//
//   - item: one string as it is stored (item.go). The decimal of an integer takes 0 to 8 bytes.
//   - entry: the items that belong together, one to three, and what its shape has in front of them.
//   - block: entries in one piece of memory (block.go). A packed value is a block, and so are the
//     buckets of a table and the leaves of a tree.
//   - element: an entry of a table, found by its key, which is its first item.
//   - index: finds the leaf that has an entry of a ranked tree, by the entry's first string
//     (leaf_index.go).
//   - rank: 8 bytes by which a tree is ordered, as an unsigned number. A sorted set makes them of its
//     scores.
//   - away: said of a string that is too long for its block. It is a part of its own, and the block
//     has its number.
//   - list: a tree without ranks that notes its changes (list.go). The form of its deltas is in
//     list_form.go.
//
// # How they are used
//
// A packed value is changed in a copy (Pack), which replaces the record's value when it is done. A
// command that names several keys finds them in one pass (Packed.Find). A change that would exceed
// the limits is refused; the type then makes a value with parts and gives it the entries (Unpack). It
// goes back (PackTable, PackTree) when the value is within half of the limits (Small).
//
// A Table or Tree is made for each command, of the value and of the planes and own bytes that the type
// gives to it. Several shapes of one value share the plane of strings.
//
//	t := shape.Table{V: v, Blocks: 0, Away: 1, Items: 2, Now: now}
//	if err := t.Reserve(work, args, false); err != nil { ... }   // memory for all of them, or an error
//	for ... { added, _ := t.Set(field, value, 0) }
//
// What has changed is noted in words that a table on another node applies (delta.go), and a whole
// table is dumped in the same words, a piece at a time (dump.go). A type gives these to the engine
// as its Form.
//
// # Invariants
//
//   - Memory is taken before the first change. Table.Reserve takes it for any number of elements.
//     Tree.InsertAt, Insert, Move and Replace take it for one entry. Deletions take only free cells, so
//     they evict nothing and cannot fail.
//   - What adds an entry or makes one longer asks the value first whether it may grow (engine's
//     Parts.MayGrow), and what lengthens an integer in a table or adds a time, Parts.MayAdjust. What
//     moves and the shape itself take is not asked for.
//   - An operation on an element changes two blocks at most, and a block has at most maxBlock bytes.
//     An operation on an entry of a tree changes the leaf, a neighbour of it, and as much on each
//     level above; in a ranked tree also a bucket for each entry that changes leaf, and the parent's
//     number in the children of a node that is split or merged. Table.Reserve splits as many blocks as the elements
//     are worth. DeleteSome, Expire, Each, Scan and Walk stop where the caller says, or after a block; Scan also in
//     a block of long strings.
//   - Bytes of peers and payloads become a packed value only through CheckPacked. A value with parts
//     is never taken over as bytes: its elements are set one by one.
//   - Numbers of blocks of a table have no gaps. An entry is in the block that its hash names; the
//     hash is the engine's: clients do not know it, and each value has its own (engine.Parts.Salt).
//   - Of a tree no leaf and no node is empty, and only the root may have one child for long. The
//     index of a ranked tree has one entry for each of the tree's, and stale ones. These name tombstones:
//     what is left of leaves that were removed whole, so that their entries are not looked for one by one.
//     A tombstone takes 24 bytes. It keeps its number until no entry names it. A deletion merges or sweeps
//     buckets of the index while more entries are stale than not (tree_tombstones.go). An insertion sweeps
//     none. So after the deletion of a long range up to as many stale entries as others, 5 bytes each, stay
//     with their tombstones until there are more deletions.
//   - Views (Item, Element, Entry) are valid until the next call that may change the value.
//   - Nothing here allocates on the Go heap, with the exception of errors and of pins.
//   - Check walks through all of a table or tree; tests call it. The tests of this package run random
//     changes beside a map or a slice, with memory and without.
//
// # Time
//
// Elements of a table, and entries of a packed hash, may have a time when they expire. It takes 6
// bytes, and a byte in each entry of a block that has any. An expired element is absent for Get, Has,
// Each, Scan and Random, and new for Set; Len counts it until Expire has removed it. Times are
// relative to the value's base, so a copy on another node shifts one word.
//
// # The order of elements, and who may know it
//
// A scan goes through the blocks, so it returns elements in the order of their hashes' last bits. All of
// the first ones belong to one block of a table that has the same hashes and few blocks yet. So hashes
// are salted: each value has an order of its own, and what a client reads from one value and writes to
// another one comes there in no order. Two values have one order only if COPY has made one from the
// other. Copies on other nodes have the order of their owner's value, so a dump goes in passes (dump.go).
//
// Who may scan a value learns its order: about 16 elements are in a block, and the cursor says where.
// From many elements a client can choose those of one block, delete all others, and insert more such. So
// can a client that empties a copy and refills it from the original by a scan; and whoever finds strings
// of one XXH64 hash, which can be made under every seed (node/engine/index_crowd.go). What comes of it is
// bounded:
//
//   - A block has at most maxBlock bytes. Beyond crowdedAt its strings are parts. So it has about 400
//     members of a set, or 220 fields with values, before Reserve returns ErrCrowded; a bucket of a
//     ranked tree's index has 816 entries. Nothing has changed then, and the command answers an error.
//   - Only elements of that block are refused, and only in that value.
//   - An operation compares the tags of one block: a read takes 1.2 µs where 407 members share one
//     (measured beside other work). Deletion, merges and expiry leave a crowded block as it is.
//   - Random draws more often, and gives up after maxDraws, DrawSome after maxSomeDraws.
//
// # Why a table has blocks
//
// The alternative is a cell for each element, found by a table of hashes and numbers. It was measured
// beside the blocks (BenchmarkTable; two busy processors; a hash of n elements, payload is field +
// value). Bytes are those beyond the payload: of the value, and with what is free on its pages.
//
//	                    8+8, 1 M       16+32, 1 M     8+8, 10 M      16+32, 10 M
//	                    blocks cells   blocks cells   blocks cells   blocks cells
//	bytes an element       4.4  28.9      5.8  28.9      4.4  28.9      5.8  28.9
//	with free cells        9.7  33.1     11.4  32.9      7.7  31.2     12.5  31.2
//	read, ns               232   505      518   607      497   880      770  1167
//	read a miss, ns        193   133      419   135      488   386      703   478
//	update, ns             338   493      630   636      683   869      964   903
//	insert, ns             532   409      735   420      890   679     1099   846
//	delete, ns             346   154      597   228      392   419     1166   359
//	any element, ns        309   184      623   214      826   233     1335   226
//
// Blocks take 23 to 25 bytes less an element. Reads of elements are faster, since they touch one cell
// less, and insertions and deletions slower, since they move the block. Free cells are compacted when
// memory is wanted. Blocks that grew in steps of 32, 48 and 64 bytes moved less often, but took 0.6
// to 1.4 bytes more an element and were not measurably faster.
//
// # What a tree takes
//
// Entries of 16 bytes, 1 M of them, on the same machine (BenchmarkTree). A list takes 1.3 bytes an
// entry beyond these. A push takes 150 ns, a push and a pop at either end 300 ns, an entry by
// position 290 ns, and the deletion of a range 5 ns an entry. What a ranked tree takes stands in
// node/data/sortedsets.
package shape
