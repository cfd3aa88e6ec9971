package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
)

// oneDocument is a SettingsSource with a document that nobody changes.
type oneDocument struct{ s *ring.Settings }

func (d oneDocument) Coordinator() (m ring.Member, self, ok bool) { return ring.Member{}, false, false }

func (d oneDocument) Configure(context.Context, map[string]string) error {
	return errors.New("not used")
}

func (d oneDocument) Settings(hash []byte) *ring.Settings {
	if id := d.s.ID(); string(id.Hash[:]) == string(hash) {
		return d.s
	}
	return nil
}

// TestLargestSettings: a node sends a settings document of any size, from the bytes that
// the document keeps.
func TestLargestSettings(t *testing.T) {
	n := startNode(t)
	s, err := (*ring.Settings)(nil).With(1, map[string]string{"x": strings.Repeat("v", ring.MaxSettingsBytes-100)})
	if err != nil {
		t.Fatal(err)
	}
	n.SetSettings(oneDocument{s})
	for range 2 { // heldPins are reused
		got, err := member.FetchSettings(t.Context(), nil, n.Addr(), nil, s.ID())
		if err != nil || got.ID() != s.ID() || string(got.Encoded()) != string(s.Encoded()) {
			t.Fatalf("FetchSettings = version %d, %v; want version 1", got.ID().Version, err)
		}
	}
	missing := ring.SettingsID{Version: 2}
	if got, err := member.FetchSettings(t.Context(), nil, n.Addr(), nil, missing); got != nil || err != nil {
		t.Errorf("FetchSettings of a document that nobody has = %v, %v; want nil, nil", got, err)
	}
}
