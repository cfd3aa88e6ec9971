package hyperloglog

import (
	"encoding/binary"
	"math/bits"
)

// hash is MurmurHash64A, by Austin Appleby, with the seed that Redis uses for this. Words are
// little-endian on any machine.
func hash(b []byte) uint64 {
	const (
		seed  = 0xadc83b19
		m     = 0xc6a4a7935bd1e995
		shift = 47
	)
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> shift
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		for i, c := range b {
			h ^= uint64(c) << (8 * i)
		}
		h *= m
	}
	h ^= h >> shift
	h *= m
	return h ^ h>>shift
}

// zeros returns the number of zero bits below the lowest one bit of h, plus one, up to hashBits +
// 1.
func zeros(h uint64) uint8 { return uint8(bits.TrailingZeros64(h|1<<hashBits)) + 1 }
