package node

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// WAIT answers how many copies have everything that was written before it: the least number over
// all partitions. Redis counts only what the connection itself has written, which Dunlin does not
// track.

const (
	// waitTry is how long one attempt waits for acknowledgements.
	waitTry = 50 * time.Millisecond
	// waitPause is the longest pause between two attempts.
	waitPause = 100 * time.Millisecond
)

// wait: WAIT replicas milliseconds. A part of a reply makes one attempt: the proxy asks again.
func wait(r *request) {
	replicas, limit, refusal := session.ParseWait(r.Args)
	if refusal != "" {
		r.Fail(refusal)
		return
	}
	if r.Part {
		n := r.node
		r.coverLater(waits, func(ctx context.Context, covered *ring.PartitionSet) []byte {
			return resp.AppendInt(nil, n.countCopies(ctx, covered))
		})
		return
	}
	if r.conn.State.Executing {
		r.ReplyInt(0) // nothing waits within EXEC
		return
	}
	n, cn := r.node, r.conn
	ctx, cancel := limited(n.ctx, limit)
	var best atomic.Int64
	waiting := &session.Waiting{Reply: func() []byte { return resp.AppendInt(nil, best.Load()) }, Stop: cancel}
	r.wait(waiting)
	n.goJob(func() {
		n.awaitCopies(ctx, replicas, &best)
		cn.worker.loop.Post(func() {
			if cn.State.Waiting == waiting {
				cn.Wake(nil)
			}
		})
	})
}

// limited returns ctx with a limit of time, 0 for none.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// awaitCopies waits until there are that many copies of all that this node serves, or until ctx
// ends. It keeps in best how many there are.
func (n *Node) awaitCopies(ctx context.Context, replicas int64, best *atomic.Int64) {
	for pause := time.Millisecond; ; pause = min(2*pause, waitPause) {
		_, covered := n.coverage(&allPartitions)
		best.Store(max(best.Load(), n.countCopies(ctx, &covered)))
		if best.Load() >= replicas || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// countCopies returns how many copies have everything that was written to the partitions before:
// the least number over them.
func (n *Node) countCopies(ctx context.Context, partitions *ring.PartitionSet) int64 {
	ctx, cancel := context.WithTimeout(ctx, waitTry)
	defer cancel()
	all := n.senders.List()
	have := make([]ring.PartitionSet, len(all))
	var flushes sync.WaitGroup
	for i, s := range all {
		flushes.Go(func() {
			before := s.Copies()
			if before != (ring.PartitionSet{}) && s.Flush(ctx) == nil {
				after := s.Copies()
				have[i] = before.Intersect(&after)
			}
		})
	}
	flushes.Wait()
	least := int64(math.MaxInt64)
	for p := range uint16(ring.Partitions) {
		if !partitions.Has(p) {
			continue
		}
		count := int64(0)
		for i := range have {
			if have[i].Has(p) {
				count++
			}
		}
		least = min(least, count)
	}
	if least == math.MaxInt64 {
		return 0 // there are no partitions
	}
	return least
}
