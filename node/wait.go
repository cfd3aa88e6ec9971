package node

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/ring"
)

// WAIT answers how many copies have everything that was written before it: the least number over
// all partitions. Redis counts only what the connection itself has written, which Dunlin does not
// track.
//
// One goroutine counts for all clients that wait, as long as there are some. A proxy asks for a count (DUNLIN EACH),
// and does the waiting.

const (
	// waitTry is how long one count waits for acknowledgements.
	waitTry = 50 * time.Millisecond
	// waitPause is the longest pause between two counts.
	waitPause = 100 * time.Millisecond
)

// copyWaits are the clients that wait for copies.
type copyWaits struct {
	mu       sync.Mutex
	coming   []*copyWait   // that the goroutine has not seen yet
	counting bool          // it runs
	came     chan struct{} // has a value when somebody comes
}

// copyWait is a client that waits for copies.
type copyWait struct {
	conn     *conn
	waiting  *session.Waiting
	replicas int64
	best     atomic.Int64   // the most copies that were counted
	over     atomic.Bool    // it waits no more
	limit    *netloop.Timer // nil: none
}

// wait: WAIT replicas milliseconds
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
	cn := r.conn
	if cn.State.Executing {
		r.ReplyInt(0) // nothing waits within EXEC
		return
	}
	w := &copyWait{conn: cn, replicas: replicas}
	w.waiting = &session.Waiting{Reply: func() []byte { return resp.AppendInt(nil, w.best.Load()) }, Stop: w.stop}
	if limit > 0 {
		w.limit = r.worker.loop.After(limit, func() { cn.Wake(nil) })
	}
	r.wait(w.waiting)
	r.node.awaitCopies(w)
}

// stop notes that the wait has ended.
func (w *copyWait) stop() {
	w.over.Store(true)
	if w.limit != nil {
		w.limit.Stop()
	}
}

// awaitCopies has the goroutine count for a client too.
func (n *Node) awaitCopies(w *copyWait) {
	ws := &n.copyWaits
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.coming = append(ws.coming, w); !ws.counting {
		ws.counting, ws.came = true, make(chan struct{}, 1)
		n.goJob(n.countForAll)
		return
	}
	select {
	case ws.came <- struct{}{}:
	default:
	}
}

// next returns those for whom the next count is: all that waited, and those that have come. It ends the counting if
// there is nobody.
func (ws *copyWaits) next(all []*copyWait) []*copyWait {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all = append(all, ws.coming...)
	ws.coming = nil
	ws.counting = len(all) > 0
	return all
}

// countForAll counts copies while clients wait.
func (n *Node) countForAll() {
	ws, pause := &n.copyWaits, time.Millisecond
	for all := ws.next(nil); len(all) > 0; all = ws.next(all) {
		_, covered := n.coverage(&allPartitions)
		copies := n.countCopies(n.ctx, &covered)
		enough := make(map[*worker][]*copyWait)
		left := all[:0]
		for _, w := range all {
			w.best.Store(max(w.best.Load(), copies))
			switch {
			case w.over.Load():
			case copies >= w.replicas:
				enough[w.conn.worker] = append(enough[w.conn.worker], w)
			default:
				left = append(left, w)
			}
		}
		clear(all[len(left):])
		all = left
		for worker, those := range enough {
			worker.loop.Post(func() { worker.wakeWaits(those) })
		}
		select {
		case <-n.ctx.Done():
			return
		case <-ws.came:
			pause = time.Millisecond
		case <-time.After(pause):
			pause = min(2*pause, waitPause)
		}
	}
}

// wakeWaits answers clients for whom there are enough copies, some in each turn.
func (w *worker) wakeWaits(those []*copyWait) {
	for i, wait := range those {
		if i == blockedAtOnce {
			w.turns.take(func() { w.wakeWaits(those[i:]) })
			return
		}
		if wait.conn.State.Waiting == wait.waiting {
			wait.conn.Wake(nil)
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
