package sim

import (
	"slices"

	"github.com/dunlin-cache/dunlin/node/replica"
)

// What a transaction does to a place reaches copies as a whole: a model of feed_unit.go in
// node/engine. A snapshot goes on meanwhile, and marks behind it wait for the unit's end.

// unit gathers the effects of a transaction on one place.
type unit struct {
	sides map[*sender][]effect
	marks []lateMark
}

// lateMark is a mark behind the unit.
type lateMark struct {
	to   *sender
	mark replica.Mark
}

func (u *unit) gather(s *sender, e effect) { u.sides[s] = append(u.sides[s], e) }

// beginUnit has the effects on a place go together until endUnit.
func (n *node) beginUnit(k int) {
	if !n.w.splitUnits {
		n.units[k] = &unit{sides: make(map[*sender][]effect)}
	}
}

func (n *node) endUnit(k int) {
	u := n.units[k]
	if u == nil {
		return
	}
	n.units[k] = nil
	for _, s := range slices.Clone(n.senders) {
		if all := u.sides[s]; all != nil && s.feeds.has(k) {
			s.append(effect{place: k, unit: all})
		}
	}
	for _, late := range u.marks {
		late.to.logMark(k, late.mark)
	}
}

// markBehind logs a mark behind the unit of the place, if there is one.
func (s *sender) markBehind(k int, m replica.Mark) {
	if u := s.n.units[k]; u != nil && s.feeds.has(k) {
		u.marks = append(u.marks, lateMark{s, m})
	} else {
		s.logMark(k, m)
	}
}

// stop stops the feeds of places. Their units forget the receiver.
func (s *sender) stop(set placeSet) {
	s.feeds &^= set
	for k, u := range s.n.units {
		if u != nil && set.has(k) {
			delete(u.sides, s)
			u.marks = slices.DeleteFunc(u.marks, func(m lateMark) bool { return m.to == s })
		}
	}
}
