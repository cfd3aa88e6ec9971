package chaos

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// A follower, or the next owner of a partition that moves, gets an owner's writes a little later.
// So the death of an owner may undo its last writes, even acknowledged ones. The only other loss is
// that of a partition whose data begins anew. A node that leaves in order loses nothing.

// lossLimit bounds the age of lost writes: a write that was acknowledged earlier than this before
// the death of its owner must not be lost. Time in which the machine stood still does not count.
const lossLimit = 100 * time.Millisecond

// death is the time at which a test killed or froze a node without a warning.
type death struct {
	node      string
	at, until time.Time // the node executed nothing after until
}

// promise is what a test promises from a moment on.
type promise struct {
	on    atomic.Bool
	since atomic.Int64 // when it was last made, in nanoseconds
}

// Store makes the promise, or takes it back.
func (p *promise) Store(on bool) {
	if on && !p.on.Load() {
		p.since.Store(time.Now().UnixNano())
	}
	p.on.Store(on)
}

// Load reports whether the promise stands.
func (p *promise) Load() bool { return p.on.Load() }

// Kill kills a node without a warning.
func (x *Rig) Kill(m *harness.Member) { x.dies(m, m.Kill) }

// Freeze stops a node that will stay stopped until the cluster takes it for dead.
func (x *Rig) Freeze(m *harness.Member) { x.dies(m, func() { m.Stop() }) }

func (x *Rig) dies(m *harness.Member, do func()) {
	at := time.Now()
	do()
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.deaths = append(x.deaths, death{m.ID, at, time.Now()})
}

// judge returns an error for an absence that no table and no death explains. It counts the lost
// writes of one that a death explains.
func (x *Rig) judge(a absence) error {
	if x.Evicts && a.shown == 0 {
		return nil
	}
	err := x.Tables.judge(a)
	if err == nil && !x.KeepsAll.Load() {
		return nil
	}
	if err == nil && x.Tables.beganAnew(a, x.KeepsAll.since.Load()) {
		return nil // in a step before; nobody has read it since
	}
	if err == nil && x.stumblesSince(a.from.Add(-harness.AnswerTime)) {
		return nil // a node got no processor, and had to be replaced
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
		if age > lossLimit {
			age -= x.Pulse.Missed(a.acked, d.at)
		}
		// The receiver of a partition that moves takes over as a follower does.
		copied := x.Copies >= 2 || x.Tables.movingAbout(a.partition, d.at)
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

// keepLoss notes how many acknowledged writes of a key are lost, and the age of the first of them
// at the death. Several reads may find the same loss.
func (x *Rig) keepLoss(a absence, age time.Duration) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.losses[a.key] = max(x.losses[a.key], a.lost)
	x.oldestLoss = max(x.oldestLoss, age)
}

// TakeLosses returns how many acknowledged writes were lost since the last call, and the highest
// age of one at the death of its owner.
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

// miscount is a count of keys or elements that is off: too low, which is right only if enough of
// those expected may have been lost, or too high, which is right only if enough deletions may.
type miscount struct {
	name     string
	explains []absence
	off      int
	what     string
}

func (m miscount) judge(x *Rig) error {
	last := errors.New("nothing of it was lost")
	explained := 0
	for _, a := range m.explains {
		if err := x.judge(a); err != nil {
			last = err
		} else {
			explained++
		}
	}
	if explained < m.off {
		return fmt.Errorf("%s finds %d %s, of which %d are explained: %w", m.name, m.off, m.what, explained, last)
	}
	return nil
}
