package proxy

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// Before a proxy drains, the sessions that have asked for it (CLIENT MAINT_NOTIFICATIONS) are told to move, by the push
//
//	MOVING <number> <seconds until the proxy closes> <null>
//
// The proxy serves everybody, and accepts new clients, until these have gone or the time is over: whoever knows no
// other address would only wait longer without it. It names no other proxy, since it does not know at which address its
// clients reach one, through a load balancer, a name or a Service. Without an address a client connects again to the
// one that it has been given, when half of the time is over: balancers have seen by then that this proxy is not ready.
//
// A session is told when its client reads: at once if it subscribes or waits for a reply, otherwise ahead of its next
// reply. Libraries look whether an idle connection was closed before they use it again, and a push that nobody has
// read would hide that from them.

// moveAtOnce is how many sessions a loop tells in one turn.
const moveAtOnce = 512

// leastMove is how much time a session that has begun meanwhile must have to be told: it may come here again.
const leastMove = 2 * time.Second

// moving is what a worker tells sessions while they are to move.
type moving struct {
	number       int64         // of the push: libraries drop one that is not newer than the last, of another proxy, too
	since, until time.Duration // on the loop's clock
}

// appendMoving appends the push.
func appendMoving(dst []byte, number int64, left time.Duration) []byte {
	dst = resp.AppendBulkString(pubsub.AppendPushHeader(dst, resp.RESP3, 4), "MOVING")
	dst = resp.AppendInt(dst, number)
	dst = resp.AppendInt(dst, int64(left.Round(time.Second)/time.Second))
	return resp.AppendNull(dst, resp.RESP3)
}

// moveClients tells sessions to move. It returns when all of these have gone, when their time is over, or when ctx
// ends.
func (p *Proxy) moveClients(ctx context.Context) {
	number := time.Now().UnixMilli()
	for _, w := range p.workers {
		w.loop.Post(func() { w.move(number) })
	}
	over := time.NewTimer(p.cfg.MoveTime)
	defer over.Stop()
	tick := time.NewTicker(order.SilenceTick)
	defer tick.Stop()
	for p.haveMovers() {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-tick.C:
		}
	}
}

// haveMovers reports whether there are sessions that move when they are told to.
func (p *Proxy) haveMovers() bool {
	var have atomic.Bool
	err := p.cfg.Group.Each(func(l *netloop.Loop) {
		if slices.ContainsFunc(p.workers[l.Index()].clients, (*client).movesWhenTold) {
			have.Store(true)
		}
	})
	return err != nil || have.Load() // a loop that is busy is asked again
}

// move begins to tell the sessions to move.
func (w *worker) move(number int64) {
	now := w.loop.Now()
	w.moving = &moving{number: number, since: now, until: now + w.proxy.cfg.MoveTime}
	w.tellReaders(len(w.clients))
}

// tellReaders tells the first of the sessions whose clients read, in turns, the last of them first: whoever takes the
// place of one that leaves meanwhile was told. Those who come are told when they send something.
func (w *worker) tellReaders(first int) {
	first = min(first, len(w.clients))
	rest := max(0, first-moveAtOnce)
	for _, s := range w.clients[rest:first] {
		if s.head < s.tail || s.state.Subscribes() {
			s.tellMoving()
		}
	}
	if rest > 0 {
		w.loop.Post(func() {
			if w.moving != nil {
				w.tellReaders(rest)
			}
		})
	}
}

// movesWhenTold reports whether the session goes elsewhere when it is told to.
func (s *client) movesWhenTold() bool {
	return s.state.Maintenance && s.state.Version == resp.RESP3 && !s.state.LosesTopics()
}

// tellMoving tells the session once to move, unless a large reply is in the output in part.
func (s *client) tellMoving() {
	m := s.w.moving
	left := m.until - s.w.loop.Now()
	if s.told || !s.movesWhenTold() || s.isCutting() || s.isClosed() || s.state.Since > m.since && left < leastMove {
		return
	}
	frame := appendMoving(nil, m.number, max(0, left))
	if out, ok := s.conn.Grow(s.conn.Out(), len(frame)); ok {
		s.told = true
		s.conn.SetOut(append(out, frame...))
	}
}
