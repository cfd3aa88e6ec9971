// Package rdb reads and writes strings in the form in which Redis's DUMP and RESTORE hand values
// round:
//
//	│ type │ string … │ version, 2 │ CRC-64 of all before it, 8 │     numbers are little-endian
//
// The type of a string is 0. The string itself begins with its length, or says that it is something
// else:
//
//	00nnnnnn                     n bytes follow
//	01nnnnnn nnnnnnnn            the same
//	10000000, 4 or 10000001, 8   the length in big-endian order, then the bytes
//	11000000, 11000001, 11000010 an integer of 1, 2 or 4 bytes, whose decimal form is the string
//	11000011                     compressed: the length of that, the length of the string, and LZF (lzf.go)
//
// What is written is what Redis 7.0 writes with rdbcompression no: it is read by every later
// version, too. What is read is all of it. A payload is a client's: no memory is taken because of a
// length that it names, only for bytes that are there.
package rdb
