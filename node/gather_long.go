package node

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/crew"
)

// longWork is what gathered commands take turns for whose values are long, beside the place in
// which each computes: as many processors as before are left to the loops. As in the crew there is
// a rest behind each piece of work while loops are strained, in which short commands compute. So
// long ones take a tenth of the time of one goroutine then, unless one of them waits for too long.
type longWork struct {
	node    *Node
	turn    chan struct{}
	hurried atomic.Int32 // those that wait for too long
}

// longLoans is from how many bytes on the loans of a command are long: some hundreds of elements,
// which take longer than exec.RestBehind overlooks.
const longLoans = 8 << 10

// compute has f compute in its turn. The next one waits for the end of the rest, not the caller.
func (l *longWork) compute(ctx context.Context, f func() error) error {
	hurry := time.AfterFunc(crew.LongWait, func() { l.hurried.Add(1) })
	pass, err := enter(ctx, l.turn)
	if !hurry.Stop() {
		defer l.hurried.Add(-1)
	}
	if err != nil {
		return err
	}
	leave, err := enter(ctx, l.node.gathers.computing)
	if err != nil {
		pass()
		return err
	}
	begun := time.Now()
	defer func() {
		leave()
		worked := time.Since(begun)
		l.node.goJob(func() {
			defer pass()
			if l.hurried.Load() == 0 {
				l.node.restBehind(worked)
			}
		})
	}()
	return f()
}
