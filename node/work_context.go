package node

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
)

// workContext is the context of a goroutine that works on a command of a transaction, while that
// holds its partition. Err is asked before each slice of the work: it also reports that the
// transaction is going to be given up. Only the goroutine calls it.
type workContext struct {
	context.Context
	node      *Node
	partition uint16
	held      bool
	fences    uint64    // Node.fences when the hold began
	hindered  time.Time // since when the node is fenced or does not serve the partition; zero: it may go on
	overdue   bool      // the transaction must be given up
}

// workContext returns the context of the work on a command of the transaction. It ends with the
// connection, unless the command may write and another one may have changed something before: work on a
// single command has changed nothing that others see, and its command is as if it had never come. Of
// one that only reads, nobody would get the reply.
func (x *transaction) workContext(cn *conn) *workContext {
	base := cn.node.ctx
	if x.single || !x.wrote || !x.must {
		base = cn.context()
	}
	ctx, cancel := context.WithCancel(base)
	if x.cancel = cancel; x.job != nil {
		x.letCancel()
	}
	x.work = &workContext{Context: ctx, node: cn.node, partition: x.partition, held: x.hold != nil, fences: x.fences}
	return x.work
}

// letCancel has DUNLIN CANCEL end the present work, if the transaction has changed nothing.
func (x *transaction) letCancel() {
	x.job.cancel = nil
	if x.wrote && !x.single {
		return
	}
	if x.job.cancel = x.cancel; x.job.canceled {
		x.cancel()
	}
}

// Err is not nil when the work is of no use any more.
func (c *workContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.isOverdue() {
		return context.Canceled
	}
	return nil
}

// isOverdue reports whether the transaction must be given up.
func (c *workContext) isOverdue() bool {
	if !c.held {
		return false
	}
	lost := c.isLost()
	switch {
	case lost && c.fences != c.node.fences.Load(): // others may not have waited for the end of the hold
		c.overdue = true
	case !lost && !c.node.fenced.Load():
		c.hindered = time.Time{}
	case c.hindered.IsZero():
		c.hindered = time.Now()
	case time.Since(c.hindered) > c.node.holdPatience:
		c.overdue = true
	}
	return c.overdue
}

// isLost reports whether the node does not serve the partition any more.
func (c *workContext) isLost() bool {
	return c.node.view.Load().Standing[c.partition] != ownership.Serving
}

// workIsOverdue reports whether the work that has just ended found that the transaction must be
// given up.
func (x *transaction) workIsOverdue() bool {
	work := x.work
	x.work = nil
	return work != nil && work.overdue
}
