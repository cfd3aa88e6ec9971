package node

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// home is the partition that a gathered command stores in, while the command holds it: for a version that is compared,
// and the one command that stores.
type home struct {
	hand
	began uint64 // the epoch in which the node has gained the partition
	ctx   *workContext
}

// atHome calls f with the command's home, when nobody else holds it and there is a place to
// compute. stored is announced in the place of RESTORE's event. It returns errNotHome, having done
// nothing, if this node does not serve the home any more, and waits while the database is closed.
func (w *gatherRun) atHome(ctx context.Context, stored keyChange, f func(x *home) error) error {
	var waited time.Duration
	for {
		var other *engine.Hold
		early := false
		err := w.compute(ctx, func() (err error) {
			x := w.newHome(stored)
			if other, early, err = x.enter(); other == nil && !early && err == nil {
				err = x.within(f)
			}
			w.node.giveHome(x)
			return err
		})
		switch {
		case err != nil:
			return err
		case other != nil && !w.node.awaitHold(ctx, other, &waited):
			return textError(exec.ErrHeld)
		case early:
			time.Sleep(fencedPause)
		case other == nil:
			return nil
		}
	}
}

// takeHome returns one that nobody uses, for some moments.
func (n *Node) takeHome() *home {
	if x, ok := n.gathers.homes.Get().(*home); ok {
		return x
	}
	x := &home{hand: hand{node: n}}
	x.equip(new(exec.Worker))
	x.state.Executing = true
	x.DumpForValkey = false // this build reads it
	return x
}

// giveHome lets others have it. Behind a panic nobody has.
func (n *Node) giveHome(x *home) {
	x.EndScripted()
	x.Announce, x.Hold, x.ctx = n.events.note, nil, nil
	n.gathers.homes.Put(x)
}

func (w *gatherRun) newHome(stored keyChange) *home {
	n := w.node
	x := n.takeHome()
	x.Partition, x.Database, x.Now = ring.Partition(w.slot), w.target, n.cfg.Group.UnixMilli()
	x.ctx = &workContext{Context: n.ctx, node: n, partition: x.Partition, held: true, fences: n.fences.Load()}
	x.Announce = func(class keyevent.Class, event string, database uint8, key []byte) {
		if class == keyevent.Generic && event == "restore" {
			class, event = stored.class, stored.event
		}
		n.events.note(class, event, database, key)
	}
	return x
}

// enter holds the partition, see Node.holdHere.
func (x *home) enter() (other *engine.Hold, early bool, err error) {
	e := x.node.holdHere(engine.Section(x.Partition, x.Database), x.Now, x.ctx.fences)
	if x.Hold = e.hold; e.hold != nil {
		x.began = e.view.Began[x.Partition]
	}
	return e.other, e.early, e.err
}

// holding says what became of an attempt to hold a partition in a goroutine. It is held if the
// others are not set.
type holding struct {
	hold  *engine.Hold
	view  *ownership.View
	other *engine.Hold // somebody else holds it
	early bool         // the node is fenced, or the database closed
	err   error        // errNotHome, or the keys of the database lie elsewhere
}

// holdHere holds the partition of a section, unless somebody else does, the node does not serve it,
// or the keys of the database lie elsewhere. fences is Node.fences from before.
//
// No barrier waits for a goroutine: a table may take the partition while the hold begins. But
// whoever obeys a table first publishes its view, and then looks for holds. So either the hold is
// found, and waited for, or the view that is looked at behind it is the new one. It is the same
// with settings that close a database (placing.go).
func (n *Node) holdHere(section uint16, now int64, fences uint64) (e holding) {
	if n.isFenced(n.cfg.Group.Clock()) {
		return holding{early: true}
	}
	t := n.engine.Lock(section, now)
	if e.other = t.Holder(); e.other == nil {
		e.hold = t.HoldUnit()
	}
	t.Unlock()
	if e.other != nil {
		return e
	}
	database, places := engine.DatabaseOf(section), n.placing.Load()
	switch e.view = n.view.Load(); {
	case places.Pins(database):
		e.err = textError(exec.ErrClosed)
	case e.view.Standing[engine.PartitionOf(section)] != ownership.Serving:
		e.err = errNotHome
	case n.isFenced(n.cfg.Group.Clock()), n.fences.Load() != fences, places.closed(e.view.Table).Has(database):
		e.early = true
	default:
		return e
	}
	e.hold.End()
	e.hold = nil
	return e
}

// version returns the version of a key.
func (x *home) version(key []byte) []byte {
	t := x.Hold.Lock()
	defer t.Unlock()
	return x.node.appendVersion(nil, x.began, false, t, key)
}

// restore stores a payload under a key. It returns the reply to RESTORE, valid until leave.
func (x *home) restore(key, payload []byte, expireAt int64, replace bool) (reply []byte) {
	args := [][]byte{[]byte("RESTORE"), key, expiryArg(expireAt), payload, []byte("ABSTTL"), []byte("REPLACE")}
	if !replace {
		args = args[:5]
	}
	return x.call(x.ctx, args...)
}

// remove deletes a key.
func (x *home) remove(key []byte) (reply []byte) { return x.call(x.ctx, []byte("DEL"), key) }

// within calls f and ends the hold.
func (x *home) within(f func(x *home) error) error {
	defer x.leave()
	return f(x)
}

// leave ends the hold.
func (x *home) leave() {
	if x.later != nil { // behind a panic
		x.later.End()
		x.later = nil
	}
	x.EndScripted()
	x.Hold.End()
}
