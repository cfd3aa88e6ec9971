// Package strings executes the commands of strings: GET and SET with their relatives, INCR and its
// relatives, and LCS. Bitmaps and HyperLogLogs are strings, so its Type is theirs too.
package strings
