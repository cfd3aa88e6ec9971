package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// player is one life of a member.
type player struct {
	*schedule
	self  ring.Member
	mind  *Machine
	table *ring.Table
	alive map[*player]ring.Member // as it has heard of them; not the dead
	have  ring.PartitionSet       // what it reports

	dead, paused bool
	parked       []func() // what waits for it to go on
	standstills  uint64
	hurt         time.Duration // when it was last paused
	adopted      time.Duration // when it got its table
	searched     bool
	busy, again  bool // within a step; to be woken when it is over
	timer        int
}

// later has the member do something, if it lives and runs by then, or when it goes on.
func (p *player) later(d time.Duration, do func()) {
	p.after(d, func() {
		switch {
		case p.dead:
		case p.paused:
			p.parked = append(p.parked, do)
		default:
			do()
		}
	})
}

// join looks for somebody at three of the join addresses, and again before long: within half a second
// while it knows nobody, as real members do. So it finds who is there before it founds a cluster.
func (p *player) join() {
	again := p.between(500*time.Millisecond, 2*time.Second)
	if len(p.alive) == 0 {
		again = 500 * time.Millisecond
	}
	p.later(again, p.join)
	addresses := slices.DeleteFunc(p.rng.Perm(slots), func(slot int) bool { return p.self.ID == slotID(slot) })
	for _, slot := range addresses[:3] {
		if contact := p.running(slot); contact != nil {
			p.meet(contact)
		}
	}
}

// meet has this member and one that answers it hear of each other, and of whom they know.
func (p *player) meet(contact *player) {
	p.hear(contact)
	contact.hear(p)
	group := p.group()
	for _, a := range group {
		for _, b := range group {
			if _, known := a.alive[b]; !known {
				within := soon
				if a == p {
					within = inTheEnd
				}
				a.later(p.between(0, within), func() { a.hear(b) })
			}
		}
	}
}

// group returns those who hear of one another: whom this member knows, whom those know, and so on.
func (p *player) group() []*player {
	group := []*player{p}
	for i := 0; i < len(group); i++ {
		for _, o := range p.members {
			if _, known := group[i].alive[o]; known && !slices.Contains(group, o) {
				group = append(group, o)
			}
		}
	}
	return group
}

// hear has this member know the other as it is now, if it is there.
func (p *player) hear(o *player) {
	if o.dead || o.paused || o == p {
		return
	}
	if have, known := p.alive[o]; !known || have != o.self {
		p.alive[o] = o.self
		p.wake(0)
	}
}

// announce tells all others about this member.
func (p *player) announce() {
	self := p.self
	for _, o := range p.members {
		if have, known := o.alive[p]; known {
			o.later(p.between(0, soon), func() {
				if have, known = o.alive[p]; known && self.Epoch >= have.Epoch {
					o.alive[p] = self
					o.wake(0)
				}
			})
		}
	}
}

// bury has others declare it dead in a while, if it does not go on before.
func (p *player) bury() {
	for _, o := range p.members {
		o.later(p.between(burial, burial+soon), func() {
			if _, known := o.alive[p]; known && (p.dead || p.paused && p.now-p.hurt >= burial) {
				delete(o.alive, p)
				o.wake(0)
			}
		})
	}
}

func (p *player) crash() {
	p.dead = true
	p.bury()
}

func (p *player) pause(d time.Duration) {
	p.paused, p.hurt = true, p.now
	p.bury()
	p.after(d, func() {
		p.paused = false
		if p.dead {
			return
		}
		if d > time.Second {
			p.standstills++
		}
		p.hurt = p.now
		parked := p.parked
		p.parked = nil
		for _, do := range parked {
			p.later(p.between(0, soon), do)
		}
		for _, o := range p.group() {
			o.later(p.between(soon/2, 2*soon), func() { o.hear(p) })
			p.later(p.between(0, soon), func() { p.hear(o) })
		}
		p.wake(0)
	})
}

// wake has the member look around after d at the latest.
func (p *player) wake(d time.Duration) {
	if p.busy {
		p.again = true
		return
	}
	p.timer++
	turn := p.timer
	p.later(d, func() {
		if p.timer == turn && !p.busy {
			p.busy = true
			p.goOn(p.mind.Begin(p.now, Event{Searched: p.searched}))
		}
	})
}

// goOn obeys the machine, and answers its question.
func (p *player) goOn(q *Question) {
	for _, a := range p.mind.Actions() {
		switch a := a.(type) {
		case Issued:
			p.checkIssued(a)
		case Search:
			for _, o := range p.members {
				p.later(p.between(0, soon), func() { p.hear(o) })
				o.later(p.between(0, soon), func() { o.hear(p) })
			}
			p.later(soon, func() {
				p.searched = true
				p.wake(0)
			})
		}
	}
	if q != nil {
		p.ask(q)
		return
	}
	wait := p.mind.Wait()
	if p.busy = false; p.again {
		p.again, wait = false, 0
	}
	p.wake(max(wait, time.Millisecond))
}

// ask collects answers until all have come, or the time is up.
func (p *player) ask(q *Question) {
	answer, missing, over := new(Answer), len(q.Nodes), false
	end := func() {
		if !over {
			over = true
			p.goOn(p.mind.Answered(p.now, *answer))
		}
	}
	p.later(FetchTimeout, end)
	for _, m := range q.Nodes {
		i := slices.IndexFunc(p.members, func(o *player) bool { return o.self.Name() == m.Name() })
		o := p.members[i]
		if o.dead {
			p.later(0, func() {
				if missing--; missing == 0 {
					end()
				}
			})
			continue
		}
		slow := 20 * time.Millisecond
		if p.rng.IntN(5) == 0 {
			slow = soon
		}
		o.later(p.between(0, slow), func() {
			table, report := o.table, o.report()
			p.later(p.between(0, slow), func() {
				if over {
					return
				}
				if answer.Signs++; table != nil {
					answer.Tables = append(answer.Tables, table)
					answer.Reports = append(answer.Reports, report)
				}
				if missing--; missing == 0 {
					end()
				}
			})
		})
	}
}

func (p *player) report() *ring.Report {
	return &ring.Report{Node: p.self.Name(), Version: p.table.Version(), Synced: p.have}
}

// Alive, Table, Adopt and Standstills make a player a Host.
func (p *player) Alive() []ring.Member {
	members := []ring.Member{p.self}
	for _, m := range p.alive {
		if i := slices.IndexFunc(members, func(o ring.Member) bool { return o.ID == m.ID }); i < 0 {
			members = append(members, m)
		} else if members[i].Boot < m.Boot {
			members[i] = m
		}
	}
	slices.SortFunc(members, func(a, b ring.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

func (p *player) Table() *ring.Table  { return p.table }
func (p *player) Standstills() uint64 { return p.standstills }

func (p *player) Proposed() *ring.Settings { return nil }

func (p *player) Adopt(t *ring.Table, _ *ring.Settings) bool {
	if t == nil || !t.Newer(p.table) {
		return false
	}
	p.keep(t)
	p.table, p.adopted = t, p.now
	p.self.Epoch, p.self.Issuer = t.Epoch, t.Issuer
	p.checkLineage(t)
	p.announce()
	p.wake(0)
	p.later(p.between(50*time.Millisecond, 500*time.Millisecond), func() {
		if p.table == t {
			for part := range uint16(ring.Partitions) {
				if p.hasPart(t, part) {
					p.have.Add(part)
				}
			}
		}
	})
	return true
}

// keep forgets what the next table has no use for.
func (p *player) keep(next *ring.Table) {
	have := p.have
	p.have = ring.PartitionSet{}
	for part := range uint16(ring.Partitions) {
		if have.Has(part) && p.hasPart(next, part) && next.Since[part] == p.table.Since[part] {
			p.have.Add(part)
		}
	}
}

// hasPart reports whether a table gives the member a copy of a partition, or the partition.
func (p *player) hasPart(t *ring.Table, part uint16) bool {
	self := t.NodeIndex(p.self.ID, p.self.Boot)
	return self >= 0 && (int(t.Owner[part]) == self || t.Follower[part] == uint16(self) ||
		slices.ContainsFunc(t.Moves, func(m ring.Move) bool { return m.Partition == part && int(m.To) == self }))
}

// checkLineage is called when a member has adopted a table. One that only its issuer has may be
// lost with it: then the others go on from the one before.
func (p *player) checkLineage(t *ring.Table) {
	if t.Issuer == p.self.Name() {
		return
	}
	p.read[t.Version()] = true
	for _, o := range p.members {
		have := o.table
		if !o.dead && have != nil && p.read[have.Version()] && have.Version() != t.Version() &&
			!t.Descends(have.Version()) && !have.Descends(t.Version()) {
			p.violate("%s adopts %d of %s, but %s has %d of %s", p.self.Name(), t.Epoch, t.Issuer, o.self.Name(), have.Epoch, have.Issuer)
		}
	}
}

// checkIssued is called when the member has issued a table.
func (p *player) checkIssued(a Issued) {
	t := a.Table
	p.issued[t.Version()] = t
	if a.Sides > 1 {
		p.violate("%s heals a split of %d sides in %d", p.self.Name(), a.Sides, t.Epoch)
	}
	if a.Healed || len(t.Ancestors) == 0 {
		return
	}
	before := p.issued[t.Ancestors[0]]
	p.checkHeirs(before, t)
	for part := range uint16(ring.Partitions) {
		if t.Since[part] != t.Epoch {
			continue
		}
		owner := before.OwnerOf(part).Name()
		for _, o := range p.members {
			calm := !o.dead && !o.paused && (o.hurt == 0 || o.now-o.hurt > excuse)
			if calm && o.self.Name() == owner {
				p.violate("%s begins %d anew in %d though %s lives", p.self.Name(), part, t.Epoch, owner)
			}
		}
	}
}

// checkHeirs looks for partitions that a table gives to a node with their data, though the node has
// none of it.
func (p *player) checkHeirs(before, t *ring.Table) {
	for _, o := range p.members {
		to := t.NodeIndex(o.self.ID, o.self.Boot)
		if to < 0 || o.table != before {
			continue
		}
		for part := range uint16(ring.Partitions) {
			moves := int(t.Owner[part]) == to && t.Since[part] == before.Since[part] && before.OwnerOf(part).Name() != o.self.Name()
			if moves && !o.have.Has(part) {
				p.violate("%s gives %d to %s in %d, which has no copy", p.self.Name(), part, o.self.Name(), t.Epoch)
				return
			}
		}
	}
}
