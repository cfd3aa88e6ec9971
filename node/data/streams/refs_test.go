package streams

import (
	"fmt"
	"slices"
	"testing"
)

// What is deleted with regard to groups costs steps for what the groups have of it. How many groups
// have nothing of it matters once in a batch, and not for each entry: 2,000 of them beside 20,000
// entries took a minute.
func TestReferencesCostWhatTheyAre(t *testing.T) {
	const entries, others = 640, 500
	for _, x := range []struct {
		refs    refs
		readers int // groups in which all entries are pending
		stay    bool
	}{
		{delRef, 3, false},
		{delRef, 0, false},
		{acked, 0, false},
		{acked, 1, true},
	} {
		m := newRig(t, 1)
		m.with(m.owner, func(s *stream) {
			for i := range entries {
				m.failed(s.add(ID{uint64(i + 1), 0}, [][]byte{[]byte("f"), []byte("v")}))
			}
			for i := range others + x.readers {
				g, err := s.createGroup(fmt.Append(nil, i), ID{entries, 0}, 0)
				if m.failed(err); i >= x.readers {
					continue
				}
				c, err := s.createConsumer(&g, []byte("c"), m.now)
				m.failed(err)
				for i := range entries {
					m.failed(s.setPending(&g, &c, pending{id: ID{uint64(i + 1), 0}, delivered: m.now, count: 1}))
				}
			}
			m.failed(s.close())
		})
		spent, runs, left := 0, 0, entries
		for from := 0; from < entries; from += changedAtOnce {
			d := removal{refs: x.refs}
			for whole := false; !whole; runs++ {
				m.with(m.owner, func(s *stream) {
					if d.batch == nil {
						d.begin(s.idsFrom(ID{uint64(from + 1), 0}, make([]ID, min(changedAtOnce, entries-from))))
					}
					steps := refSteps
					whole = d.advance(s, nil, &steps, func(_ outcome, deleted bool) bool {
						if deleted {
							left--
						}
						return true
					})
					spent += refSteps - steps
					m.failed(s.close())
				})
			}
		}
		batches := (entries + changedAtOnce - 1) / changedAtOnce
		most := batches*(others+3*x.readers) + entries*(x.readers*ackSteps+deleteSteps) + 3*runs
		if x.stay != (left == entries) || !x.stay && left != 0 || spent > most {
			t.Errorf("%+v: %d entries are left, and %d steps were taken in %d runs, want at most %d", x, left, spent, runs, most)
		}
		m.with(m.owner, func(s *stream) {
			s.eachGroup(nil, func(g *group) bool {
				if x.refs == delRef && g.pending != 0 {
					t.Errorf("%+v: %d entries are pending in %q", x, g.pending, g.name)
				}
				return true
			})
		})
	}
}

// What is not pending in the group of XACKDEL stays pending in others.
func TestReferencesBeyondTheGroup(t *testing.T) {
	m := newRig(t, 1)
	m.with(m.owner, func(s *stream) {
		var groups [2]group
		for i := range groups {
			g, err := s.createGroup(fmt.Append(nil, i), ID{9, 0}, 0)
			m.failed(err)
			c, err := s.createConsumer(&g, []byte("c"), m.now)
			m.failed(err)
			for ms := uint64(1 + i); ms <= 3; ms++ {
				m.failed(s.setPending(&g, &c, pending{id: ID{ms, 0}, delivered: m.now, count: 1}))
			}
			groups[i] = g
		}
		d := removal{refs: delRef}
		d.begin([]ID{{3, 0}, {1, 0}})
		var got []outcome
		for whole := false; !whole; {
			steps := refSteps
			whole = d.advance(s, &groups[1], &steps, func(o outcome, deleted bool) bool {
				if got = append(got, o); deleted {
					t.Error("there are no entries")
				}
				return true
			})
		}
		if want := []outcome{entryDeleted, noEntry}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
		for i, want := range [][]ID{{{1, 0}, {2, 0}}, {{2, 0}}} {
			var left []ID
			g, _ := s.numbered(groups[i].number)
			s.eachPending(&g, nil, minID, func(p pending) bool {
				left = append(left, p.id)
				return true
			})
			if !slices.Equal(left, want) {
				t.Errorf("pending in group %d: %v, want %v", i, left, want)
			}
		}
		m.failed(s.close())
	})
}
