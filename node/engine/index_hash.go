package engine

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// The constants of XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
const (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
	prime3 uint64 = 0x165667B19E3779F9
	prime4 uint64 = 0x85EBCA77C2B2AE63
	prime5 uint64 = 0x27D4EB2F165667C5
)

// hash is seeded XXH64. Keys under 32 bytes, nearly all, take the short form of the specification
// here: the library's seeded form goes through a 72-byte state, three times the time for a 16-byte
// key. What is longer than any key or name of an element is looked for in vain, and not hashed whole: the shard is
// locked.
func hash(seed uint64, key []byte) uint64 {
	if len(key) >= 32 {
		var d xxhash.Digest
		d.ResetWithSeed(seed)
		_, _ = d.Write(key[:min(len(key), MaxKeyLen)])
		return d.Sum64()
	}
	h := seed + prime5 + uint64(len(key))
	for ; len(key) >= 8; key = key[8:] {
		h ^= bits.RotateLeft64(binary.LittleEndian.Uint64(key)*prime2, 31) * prime1
		h = bits.RotateLeft64(h, 27)*prime1 + prime4
	}
	if len(key) >= 4 {
		h ^= uint64(binary.LittleEndian.Uint32(key)) * prime1
		h = bits.RotateLeft64(h, 23)*prime2 + prime3
		key = key[4:]
	}
	for _, b := range key {
		h ^= uint64(b) * prime5
		h = bits.RotateLeft64(h, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

// tagOf is the part of a key's hash that the index keeps: its low bits choose the bucket, so a
// bucket can be split without looking at a single key.
func tagOf(seed uint64, key []byte) uint32 { return uint32(hash(seed, key)) }
