// Package glob matches keys with the patterns of KEYS and SCAN, in linear space and without the
// exponential time that Redis's own matcher may take.
package glob
