// Package lists has the commands of lists.
//
// A small list is a packed value of up to 1,024 bytes. A big one is a tree of blocks of up to 4 KiB
// (shape.List), with which an element is found, inserted or removed at any place in O(log n).
// Receivers get a small list whole after each change, and of a big one each change by position. Packed
// values of up to 4 KiB would be dearer: with 2,000 and 4,000 bytes a push or pop took 346 and 404 ns,
// as one leaf 284 and 295 (BenchmarkOnData/queue, CPU time).
//
// An element of 256 bytes takes 25 beyond its payload, redis-server's 10. 16 of these are padding:
// from 208 bytes on the code of an item names lengths in steps of 16, and a multiple of 16 gets a
// whole one (shape/item.go). 6 are what 13 such elements leave of their block's cell. Larger blocks
// would leave less, but a part has at most 4 KiB where pages have 16, in nodes with little memory,
// and what is inserted in the middle moves half of its block.
//
//	LPUSH, LPOP, LSET …   list.go ──▶ packed: a changed copy replaces the record's value
//	                              └─▶ big: shape.List, which notes its changes
//
// Commands that search a list hold its partition while they go on in slices (LINSERT, LREM), or pin
// the list (LPOS, and LRANGE with a long reply).
//
// list.insert is the only place where a key becomes a list.
package lists
