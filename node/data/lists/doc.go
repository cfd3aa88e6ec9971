// Package lists has the commands of lists.
//
// A small list is a packed value, up to a block of 4 KiB in its record. A big one is a tree of such
// blocks (shape.List), with which an element is found, inserted or removed at any place in
// O(log n). Receivers learn of each change by position.
//
//	LPUSH, LPOP, LSET …   list.go ──▶ packed: a changed copy replaces the record's value
//	                              └─▶ big: shape.List, which notes its changes
//
// Commands that search a list hold its partition while they go on in slices (LINSERT, LREM), or pin
// the list (LPOS, and LRANGE with a long reply).
//
// list.insert is the only place where a key becomes a list.
package lists
