package streams

import (
	"slices"
	"testing"
)

// What a group that was destroyed has left is removed, with the longest name and the greatest ID, and the next group
// keeps its consumer without a name.
func TestSweepOfAGroup(t *testing.T) {
	m := newRig(t, 1)
	full := slices.Repeat([]byte{0xff}, maxName)
	m.with(m.owner, func(s *stream) {
		for _, group := range []string{"gone", "stays"} {
			if err := s.makeGroup([]byte(group), minID, 0); err != nil {
				t.Fatal(err)
			}
			for _, name := range [][]byte{nil, full} {
				g, _ := s.group([]byte(group))
				c, err := s.createConsumer(&g, name, m.now)
				if err != nil {
					t.Fatal(err)
				}
				if err = s.setPending(&g, &c, pending{id: maxID}); err != nil {
					t.Fatal(err)
				}
			}
		}
		g, _ := s.group([]byte("gone"))
		s.destroyGroup(&g)
		m.failed(s.close())
	})
	for range 10 {
		m.owner.Sweep(m.now, 100)
	}
	m.with(m.owner, func(s *stream) {
		if s.gone() != 0 {
			t.Error("keys of the group are left")
		}
		if err := s.big.check(); err != nil {
			t.Error(err)
		}
		g, _ := s.group([]byte("stays"))
		for _, name := range [][]byte{nil, full} {
			if _, found := s.consumer(&g, name); !found {
				t.Errorf("the consumer with a name of %d bytes is gone", len(name))
			}
		}
	})
}
