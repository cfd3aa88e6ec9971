package hashes

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// TestStreamsCarryPackedHashes: another node takes a packed hash of any length for one.
func TestStreamsCarryPackedHashes(t *testing.T) {
	var p shape.Pack
	longest := 0
	for size := range 190 {
		p.Open(&shape.PackedHash, nil, 1)
		for i := 0; p.Insert(i, 0, fmt.Append(nil, "f", i), make([]byte, size)); i++ {
		}
		for n := size; p.Replace(0, 1, make([]byte, n)); n++ {
		}
		value := p.Bytes()
		longest = max(longest, len(value))
		if err := checkRecord(value); err != nil || len(value) > hashType.MaxEffect {
			t.Fatalf("a hash of %d bytes: %v; a stream brings up to %d", len(value), err, hashType.MaxEffect)
		}
	}
	if longest <= shape.MaxPacked {
		t.Errorf("the longest hash had %d bytes", longest)
	}
}
