package ring

// advance takes s, whose owner is alive, one step towards what the ring wants. The owner's move
// takes precedence over the follower's, because a partition has one move at a time.
//
// The owner gives the partition up only if it serves it under cur. An owner that has missed cur
// does not feed whom cur names: it would not hand over what a copy lacks that counts as in sync
// because an owner before has just handed it over.
func (p *planner) advance(s seat, wantOwner, wantFollower uint16, serves bool, inSync func(uint16) bool) seat {
	s.target = NoNode
	if p.next.Paused && p.serving[s.owner] {
		return p.keepSeats(s, wantOwner, wantFollower, inSync)
	}
	if s.owner != wantOwner {
		if !serves || !inSync(wantOwner) {
			return p.moveOwner(s, wantOwner)
		}
		s = p.takeOver(s, wantOwner, wantFollower)
	}
	switch {
	case s.follower == NoNode || wantFollower == NoNode:
		s.follower = wantFollower
	case s.follower == wantFollower:
	case inSync(wantFollower):
		s.follower = wantFollower
	default:
		s.target = wantFollower
	}
	return s
}

// keepSeats leaves s, whose owner serves, unchanged as far as that keeps a copy. It plans for a paused
// table.
func (p *planner) keepSeats(s seat, wantOwner, wantFollower uint16, inSync func(uint16) bool) seat {
	if wantFollower == s.owner {
		wantFollower = wantOwner
	}
	switch {
	case s.follower == NoNode || wantFollower == NoNode || inSync(wantFollower) && !p.serving[s.follower]:
		s.follower = wantFollower
	case s.follower != wantFollower && !p.serving[s.follower]:
		s.target = wantFollower
	}
	return s
}

// moveOwner makes s.owner feed wantOwner, unless s.owner feeds it already because it is the
// follower.
func (p *planner) moveOwner(s seat, wantOwner uint16) seat {
	if p.copies < 2 {
		s.follower = NoNode
	}
	if s.follower != wantOwner {
		s.target = wantOwner
	}
	return s
}

// takeOver makes wantOwner the owner. The old owner still has the data, so it is the best follower,
// unless the ring's follower is there already or the old owner leaves; then the present follower
// stays.
func (p *planner) takeOver(s seat, wantOwner, wantFollower uint16) seat {
	old := s.owner
	s.owner = wantOwner
	if s.follower == wantOwner {
		s.follower = NoNode
	}
	switch {
	case s.follower != NoNode && s.follower == wantFollower:
	case p.serving[old]:
		s.follower = old
	case s.follower == NoNode:
		s.follower = wantFollower
	}
	return s
}

// shelter makes the old owner of a partition with one copy its follower until the new owner reports
// that it serves. If the new owner dies before that, nobody else has the data.
func (p *planner) shelter(part uint16, before, s seat) seat {
	switch {
	case s.owner != before.owner:
		s.follower = before.owner // NoNode if it is dead
	case !p.synced[s.owner].Has(part):
		s.follower = before.follower
	}
	if s.target == s.follower {
		s.target = NoNode // it is fed anyway
	}
	return s
}
