// Package rdb reads and writes strings in the payload format of Redis's DUMP and RESTORE:
//
//	│ type │ string … │ version, 2 │ CRC-64 of all before it, 8 │     numbers are little-endian
//
// The type of a string is 0. The string itself begins with its length, or with a code for another
// encoding:
//
//	00nnnnnn                     n bytes follow
//	01nnnnnn nnnnnnnn            the same
//	10000000, 4 or 10000001, 8   the length in big-endian order, then the bytes
//	11000000, 11000001, 11000010 an integer of 1, 2 or 4 bytes, whose decimal form is the string
//	11000011                     compressed: its compressed length, its length, and LZF data (lzf.go)
//
// The package writes what Redis 7.0 writes with rdbcompression no, which every later version reads
// too. It reads all of these encodings. Payloads come from clients, so memory is allocated only for
// bytes that are there, never because of a length that a payload declares.
package rdb
