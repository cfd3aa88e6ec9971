package ring

// inSync reports whether n has a copy of the partition, fed by the owner as cur says, and reports
// it in sync.
func (p *planner) inSync(part, n uint16, before seat) bool {
	return n != NoNode && (n == before.follower || n == before.target) && p.synced[n].Has(part)
}

// bury decides a failover: it gives the partition of a dead owner to a copy in sync. Without one,
// the new owner is NoNode.
func (p *planner) bury(part uint16, before seat) seat {
	heirs := []uint16{before.follower, before.target}
	if before.target == p.wantOwner[part] {
		heirs[0], heirs[1] = heirs[1], heirs[0]
	}
	for _, heir := range heirs {
		if !p.inSync(part, heir, before) {
			continue
		}
		s := seat{heir, before.follower, NoNode}
		if heir == before.follower {
			s.follower = NoNode
		}
		return s
	}
	return seat{NoNode, NoNode, NoNode}
}
