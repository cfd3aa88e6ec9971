package engine

import (
	"testing"

	"github.com/cespare/xxhash/v2"
)

// TestHash compares the short form with the library, at every length around its limit.
func TestHash(t *testing.T) {
	key := make([]byte, 100)
	for i := range key {
		key[i] = byte(i*7 + 1)
	}
	for _, seed := range []uint64{0, 1, 0x9E3779B97F4A7C15} {
		for n := range key {
			d := xxhash.NewWithSeed(seed)
			_, _ = d.Write(key[:n])
			if got, want := hash(seed, key[:n]), d.Sum64(); got != want {
				t.Errorf("seed %d, %d bytes: got %x, want %x", seed, n, got, want)
			}
		}
	}
}
