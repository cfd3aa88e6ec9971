package node

import (
	"context"
	"sync/atomic"
	"time"
)

// longWork is the place of gathered commands whose values are long. Others do not wait behind them,
// and as in the crew the place rests behind each piece of work while loops are strained. So such
// commands take a tenth of the time of one goroutine then, unless one of them waits for too long.
type longWork struct {
	node    *Node
	place   chan struct{}
	hurried atomic.Int32 // those that wait for too long
}

// longWait is how long a command waits for the place until this rests no more: a small part of
// gatherPatience, because one may have to wait for several pieces of work.
const longWait = 500 * time.Millisecond

// longLoans is from how many bytes on the loans of a command are long: some hundreds of elements,
// which take longer than exec.RestBehind overlooks.
const longLoans = 8 << 10

// compute has f compute in the place. The place rests behind it, not the caller.
func (l *longWork) compute(ctx context.Context, f func() error) error {
	hurry := time.AfterFunc(longWait, func() { l.hurried.Add(1) })
	leave, err := enter(ctx, l.place)
	if !hurry.Stop() {
		defer l.hurried.Add(-1)
	}
	if err != nil {
		return err
	}
	begun := time.Now()
	defer func() {
		worked := time.Since(begun)
		l.node.goJob(func() {
			defer leave()
			if l.hurried.Load() == 0 {
				l.node.restBehind(worked)
			}
		})
	}()
	return f()
}
