// Package rdb reads and writes values in the payload format of Redis's DUMP and RESTORE:
//
//	│ type │ value … │ version, 2 │ CRC-64 of all before it, 8 │     numbers are little-endian
//
// The type says how the value is encoded. Redis and Valkey agree on the types below 22 and mean
// different things by those from there on, so the version is read first (kind.go).
//
//	 0                 string
//	 1 10 14 18        list
//	 2 11 20           set
//	 3 5 12 17         sorted set
//	 4 9 13 16         hash
//	15 19 21           stream (stream.go)
//	22                 hash whose fields expire, from version 80 on (Valkey)
//	24 25              the same, up to version 14 (Redis)
//
// Types 1 to 5, 22 and 24 have a count and the strings of the elements; the others have packs,
// which are collections as Redis has them in memory (pack.go). A string begins with its length, or
// with a code for another encoding:
//
//	00nnnnnn                     n bytes follow
//	01nnnnnn nnnnnnnn            the same
//	10000000, 4 or 10000001, 8   the length in big-endian order, then the bytes
//	11000000, 11000001, 11000010 an integer of 1, 2 or 4 bytes, whose decimal form is the string
//	11000011                     compressed: its compressed length, its length, and LZF data (lzf.go)
//
// The package writes strings as Redis 7.0 does with rdbcompression no, and collections in the
// oldest encodings, types 1, 2, 5 and 4, which every later version reads too (Writer). It writes
// streams as Redis 7.0 does, type 19, or with all that Redis 7.2 knows, type 21 (StreamWriter). It
// reads everything that is listed above. Payloads come from clients, so memory is allocated only for
// bytes that are there, never because of a length that a payload declares. Elements reads a
// collection element by element; its caller refuses elements that are there twice. Stream reads a
// stream part by part.
package rdb
