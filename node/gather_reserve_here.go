package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// reservedHere are partitions of this node that are reserved for a command which this node
// executes. It answers as another node does to RESERVE, WITHIN and RELEASE, and holds partitions
// for as long at most. No connection is needed for that, and no loop.
type reservedHere struct {
	run *gatherRun
	ctx context.Context

	mu sync.Mutex // held while a command is executed in a partition, or all of them lapse
	*reservations
	lapse    *time.Timer // nil before the first reservation
	over     bool        // all has ended: nothing else is executed
	executes bool        // a command has begun and not ended: behind a panic too
}

func (a *attempt) newReservedHere() *reservedHere {
	return &reservedHere{run: a.gatherRun, ctx: a.ctx, reservations: a.node.takeReservations()}
}

// refusedHere is the error with which another node's answer would be returned.
func refusedHere(text string) error { return &member.Refusal{Text: text} }

// Reserve holds the partition of a command's keys, as soon as nobody else does, and executes the
// command there.
func (v *reservedHere) Reserve(database uint8, args ...[]byte) (reply []byte, err error) {
	p, ok := reservable(args)
	if !ok {
		return nil, refusedHere(errBadReserve)
	}
	if err := v.reserve(engine.Section(p, database)); err != nil {
		return nil, err
	}
	return v.execute(p, args, member.GoesOn)
}

// Within executes a command in a partition that is reserved. If there is no time for that, the
// partition is not reserved any more.
func (v *reservedHere) Within(further member.Further, args ...[]byte) (reply []byte, err error) {
	p, ok := reservable(args)
	if !ok {
		return nil, refusedHere(errBadReserve)
	}
	if reply, err = v.execute(p, args, further); err == nil || isRefusal(err) {
		return reply, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.of(p); h != nil {
		v.reservations.end(h, false)
	}
	return nil, refusedHere(errLapsed)
}

// reserve holds the partition of a section, if it is not reserved before.
func (v *reservedHere) reserve(section uint16) error {
	n := v.run.node
	for waited := time.Duration(0); ; {
		other, err := v.tryReserve(section)
		if other == nil {
			return err
		}
		if busy := n.busyScript(other); busy != "" {
			return refusedHere(busy)
		}
		if !n.awaitHold(v.ctx, other, &waited) {
			if err := v.ctx.Err(); err != nil {
				return err
			}
			return refusedHere(exec.ErrHeld)
		}
	}
}

func (v *reservedHere) tryReserve(section uint16) (other *engine.Hold, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.run.node
	switch {
	case v.over:
		return nil, refusedHere(errLapsed)
	case v.of(engine.PartitionOf(section)) != nil: // of another slot
		return nil, nil
	}
	fences, now := n.fences.Load(), n.cfg.Group.UnixMilli()
	switch e := n.holdHere(section, now, fences); {
	case e.other != nil:
		return e.other, nil
	case e.early, errors.Is(e.err, errNotHome):
		return nil, refusedHere(exec.ErrClosed) // it is asked again
	case e.err != nil:
		return nil, refusedHere(e.err.Error())
	default:
		v.all = append(v.all, n.newReservation(e.hold, now, fences))
	}
	if v.lapse == nil {
		v.lapse = time.AfterFunc(reserveLapse, v.lapsed)
	}
	return nil, nil
}

// execute executes a command in a partition, when there is a place to compute.
func (v *reservedHere) execute(p uint16, args [][]byte, further member.Further) (reply []byte, err error) {
	err = v.run.compute(v.ctx, func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.over || v.of(p) == nil {
			return refusedHere(errLapsed)
		}
		reply, err = v.executeIn(v.of(p), args, further)
		return err
	})
	if err == nil && further == member.IsCopied {
		v.run.node.awaitCopy(p)
	}
	return reply, err
}

// executeIn executes a command in a partition that is reserved. The partition may not be reserved
// behind that.
func (v *reservedHere) executeIn(h *reservation, args [][]byte, further member.Further) (reply []byte, err error) {
	v.executes = true
	size, refusal := v.begin(h, args)
	if refusal != "" {
		v.executes = false
		return nil, refusedHere(refusal)
	}
	v.goOn(h.ctx)
	reply = v.replyOf(h)
	v.refund(h, size)
	if further != member.GoesOn {
		v.reservations.end(h, true)
	}
	if v.executes = false; resp.IsError(reply) {
		return nil, refusedHere(strings.TrimSuffix(string(reply[1:]), "\r\n"))
	}
	return reply, nil
}

// Release ends all reservations, and keeps what was stored there. It returns how many partitions
// that were.
func (v *reservedHere) Release() (partitions int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.endAll(v.isGood), nil
}

// endAll ends all reservations, and keeps what was stored there if keep says so. It returns in how
// many.
func (v *reservedHere) endAll(keep func(h *reservation) bool) (kept int) {
	for len(v.all) > 0 {
		h := v.all[len(v.all)-1]
		good := keep(h)
		if good {
			kept++
		}
		v.reservations.end(h, good)
	}
	return kept
}

func (v *reservedHere) undoAll() {
	v.over = true
	v.endAll(func(*reservation) bool { return false })
}

// lapsed ends all reservations, in a goroutine of its own: the command had them for too long.
func (v *reservedHere) lapsed() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.over {
		v.undoAll()
	}
}

// end ends what was not released, and what was stored there.
func (v *reservedHere) end(bool) {
	if v.lapse != nil {
		v.lapse.Stop()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.later != nil { // behind a panic
		v.later.End()
		v.later = nil
	}
	v.undoAll()
	if !v.executes {
		v.run.node.giveReservations(v.reservations)
	}
	v.reservations = nil
}
