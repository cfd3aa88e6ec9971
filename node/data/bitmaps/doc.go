// Package bitmaps executes the commands that see a string as bits: SETBIT, BITCOUNT, BITFIELD,
// BITOP and their relatives. What they do with bytes is internal/bitstring's. What passes over more
// than scanFrom bytes is left to a goroutine, which has the values pinned.
package bitmaps
