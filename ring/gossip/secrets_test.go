package gossip

import (
	"slices"
	"testing"
)

func secrets(texts ...string) (list [][]byte) {
	for _, t := range texts {
		list = append(list, []byte(t))
	}
	return list
}

// TestSecretsTurn: the first secret encrypts, the others are understood, and those that are gone
// are not, whatever was there before.
func TestSecretsTurn(t *testing.T) {
	ring, err := newKeyring(secrets("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range [][][]byte{
		secrets("a", "b"), secrets("b", "a"), secrets("b"), secrets("c", "b", "d"), secrets("c", "d"), secrets("e"), secrets("f", "f"), secrets("f", "g"),
		secrets("g", "f"),
	} {
		if err := turn(ring, gossipKeys(next)); err != nil {
			t.Fatal(err)
		}
		got, want := ring.GetKeys(), gossipKeys(next)
		if len(got) != len(want) || !slices.Equal(got[0], want[0]) || !contains(got, want[len(want)-1]) {
			t.Errorf("after %q the ring has %x, want %x", next, got, want)
		}
	}
	if k, err := newKeyring(nil); k != nil || err != nil {
		t.Errorf("without a secret: %v, %v", k, err)
	}
}
