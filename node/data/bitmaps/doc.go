// Package bitmaps executes the commands that treat a string as bits: SETBIT, BITCOUNT, BITFIELD,
// BITOP and their relatives. Package internal/bitstring does the work on bytes. A goroutine
// executes what reads more than scanFrom bytes, from pinned values.
package bitmaps
