package test

import (
	"fmt"
	"slices"
	"time"
)

// A follower gets what its owner executes a little later, as does whom a partition moves
// to, so that the death of an owner may undo the last writes, though they were acknowledged. That, and a
// partition whose data began anew, are the only losses; what leaves in order loses
// nothing.

// lossLimit is how long before the death of its owner a write may have been
// acknowledged and yet be lost.
const lossLimit = 100 * time.Millisecond

// death is when a node was ended, or stopped, without a warning.
type death struct {
	node      string
	at, until time.Time // it executed nothing any more after until
}

// kill ends a node without a warning.
func (x *chaos) kill(m *member) { x.dies(m, m.kill) }

// freeze stops a node for so long that it counts as dead.
func (x *chaos) freeze(m *member) { x.dies(m, func() { m.stop() }) }

func (x *chaos) dies(m *member, do func()) {
	at := time.Now()
	do()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deaths = append(x.deaths, death{m.id, at, time.Now()})
}

// judge returns an error for an absence that nothing explains, and keeps what was lost.
func (x *chaos) judge(a absence) error {
	err := x.tables.judge(a)
	if err == nil && !x.keepsAll.Load() {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%v: the data of its partition %d began anew, though every node left in order", a, a.partition)
	}
	x.mu.Lock()
	deaths := slices.Clone(x.deaths)
	x.mu.Unlock()
	for _, d := range slices.Backward(deaths) {
		if a.to.Before(d.at) || a.from.After(d.until) || !x.tables.ownedAbout(d.node, a.partition, d.at) {
			continue
		}
		if a.lost == 0 { // it was seen, and never acknowledged
			return nil
		}
		age := d.at.Sub(a.acked)
		copied := x.copies >= 2 || x.tables.movingAbout(a.partition, d.at) // and whoever it moves to takes over
		if copied && age <= lossLimit {
			x.keepLoss(a, age)
			return nil
		}
		err = fmt.Errorf("%w; %s died at %s, and the first of %d lost writes was acknowledged %v before", err, d.node, clock(d.at), a.lost, age)
	}
	if a.lost > 0 {
		x.keepLoss(a, 0)
	}
	return err
}

// keepLoss counts the acknowledged writes of a key that are lost, and how old the
// first of them was at the death. Several reads may find the same loss.
func (x *chaos) keepLoss(a absence, age time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.losses[a.key] = max(x.losses[a.key], a.lost)
	x.oldestLoss = max(x.oldestLoss, age)
}

// takeLosses returns what was lost since it was last asked.
func (x *chaos) takeLosses() (writes int, oldest time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.losses {
		writes += n
	}
	oldest = x.oldestLoss
	clear(x.losses)
	x.oldestLoss = 0
	return writes, oldest
}
