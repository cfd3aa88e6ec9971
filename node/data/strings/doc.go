// Package strings executes the commands of strings: GET and SET with all their relatives, counters,
// and LCS. Its Type is the type of bitmaps and HyperLogLogs too, which are strings.
package strings
