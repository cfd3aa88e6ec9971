// Package glob matches keys with the patterns of KEYS and SCAN, without the exponential time that
// Redis's own matcher may take. The time that a key takes is bounded: patterns have at most 4 KiB, and
// what can be costly to find in a key has a bounded length.
package glob
