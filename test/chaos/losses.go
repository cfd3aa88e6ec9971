package chaos

import (
	"fmt"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// A follower gets what its owner executes a little later, as does whom a partition moves to, so
// that the death of an owner may undo the last writes, though they were acknowledged. That, and a
// partition whose data began anew, are the only losses; what leaves in order loses nothing.

// lossLimit is how long before the death of its owner a write may have been
// acknowledged and yet be lost.
const lossLimit = 100 * time.Millisecond

// death is when a node was ended, or stopped, without a warning.
type death struct {
	node      string
	at, until time.Time // it executed nothing any more after until
}

// Kill ends a node without a warning.
func (x *Rig) Kill(m *harness.Member) { x.dies(m, m.Kill) }

// Freeze stops a node for so long that it counts as dead.
func (x *Rig) Freeze(m *harness.Member) { x.dies(m, func() { m.Stop() }) }

func (x *Rig) dies(m *harness.Member, do func()) {
	at := time.Now()
	do()
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.deaths = append(x.deaths, death{m.ID, at, time.Now()})
}

// judge returns an error for an absence that nothing explains, and keeps what was lost.
func (x *Rig) judge(a absence) error {
	err := x.Tables.judge(a)
	if err == nil && !x.KeepsAll.Load() {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%v: the data of its partition %d began anew, though every node left in order", a, a.partition)
	}
	x.Mu.Lock()
	deaths := slices.Clone(x.deaths)
	x.Mu.Unlock()
	for _, d := range slices.Backward(deaths) {
		if a.to.Before(d.at) || a.from.After(d.until) || !x.Tables.ownedAbout(d.node, a.partition, d.at) {
			continue
		}
		if a.lost == 0 { // it was seen, and never acknowledged
			return nil
		}
		age := d.at.Sub(a.acked)
		copied := x.Copies >= 2 || x.Tables.movingAbout(a.partition, d.at) // and whoever it moves to takes over
		if copied && age <= lossLimit {
			x.keepLoss(a, age)
			return nil
		}
		err = fmt.Errorf("%w; %s died at %s, and the first of %d lost writes was acknowledged %v before", err, d.node, Clock(d.at), a.lost, age)
	}
	if a.lost > 0 {
		x.keepLoss(a, 0)
	}
	return err
}

// keepLoss counts the acknowledged writes of a key that are lost, and how old the
// first of them was at the death. Several reads may find the same loss.
func (x *Rig) keepLoss(a absence, age time.Duration) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.losses[a.key] = max(x.losses[a.key], a.lost)
	x.oldestLoss = max(x.oldestLoss, age)
}

// TakeLosses returns what was lost since it was last asked.
func (x *Rig) TakeLosses() (writes int, oldest time.Duration) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	for _, n := range x.losses {
		writes += n
	}
	oldest = x.oldestLoss
	clear(x.losses)
	x.oldestLoss = 0
	return writes, oldest
}
