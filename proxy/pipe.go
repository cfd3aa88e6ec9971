package proxy

import (
	"errors"
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

const (
	coalesceBytes = 16 << 10  // a smaller batch waits for a reply while written requests are outstanding
	longTurn      = 128 << 10 // of a long request in one iteration
)

var (
	errOutOfStep  = errors.New("node sent a malformed or a surplus reply")
	errPipeClosed = errors.New("pipe closed")
)

// pipe is the connection of an order.Pipe. It reads and writes what the Machine has decided.
type pipe struct {
	*order.Pipe
	w *worker

	conn       *netloop.Conn // nil while there is none
	generation uint64        // of the connection
	challenge  bool          // the node must send a nonce before the pipe introduces itself
	scan       resp.Scanner
	tells      bool      // the connection was open, so that the node may have marks
	popped     uint64    // the token for what the next reply has popped; 0: none
	heard      bool      // a reply came since the last flush: coalescing may send
	waiters    []*client // those that found the pipe full
}

// shellOf is the connection of a pipe, made when it is first dialed.
func (w *worker) shellOf(p *order.Pipe) *pipe {
	if p.Shell == nil {
		p.Shell = &pipe{Pipe: p, w: w}
	}
	return p.Shell.(*pipe)
}

// write schedules the bytes that a pipe has queued for writing in this iteration.
func (w *worker) write(p *order.Pipe) {
	if c := p.Shell.(*pipe).conn; c != nil {
		c.MarkDirty()
	}
}

// OnFlush writes the queued requests. A batch below coalesceBytes waits while requests that were
// written completely are outstanding and no reply has come since. The next reply releases the batch
// and everything queued meanwhile in one write. No timer is needed, because a reply must come. The
// rest of a request that is partly written never waits.
func (p *pipe) OnFlush(c *netloop.Conn) {
	if !p.IsLong() { // the bytes of a long request are charged already
		c.SetOther(p.Size())
	}
	if !p.IsOpen() {
		return
	}
	queued := p.Queued()
	if len(queued) == 0 || !p.heard && len(queued) < coalesceBytes && p.MayWait() {
		return
	}
	p.heard = false
	p.w.stats.PipeFlushes++
	p.w.stats.countBatch(p.TakeUnsent())
	batch := queued
	if p.IsLong() {
		batch = batch[:min(len(batch), longTurn)]
	}
	n, err := c.TryWrite(batch)
	p.Wrote(n)
	p.w.stats.PipeBytesOut += uint64(n)
	switch {
	case err != nil:
		p.fail(fmt.Errorf("cannot write to node: %w", err))
	case n == len(batch) && len(p.Queued()) > 0:
		c.MarkDirty()
	}
}

// OnData pairs replies with the requests at the front of the pipe.
func (p *pipe) OnData(c *netloop.Conn, in []byte) int {
	p.Heard()
	off := 0
	for off < len(in) && p.conn == c {
		switch p.scan.Scan(in[off:]) {
		case resp.NeedMore:
			return off
		case resp.Malformed:
			p.fail(errOutOfStep)
			return len(in)
		}
		n := p.scan.Len()
		if p.w.listening.waits(p, c, in[off:off+n]) {
			return off
		}
		p.reply(in[off : off+n])
		off += n
	}
	if p.conn == c && len(p.Queued()) > 0 {
		c.MarkDirty()
	}
	return off
}

func (p *pipe) reply(reply []byte) {
	if !p.IsOpen() {
		p.greeted(reply)
		return
	}
	if reply[0] == '>' {
		p.pushed(reply)
		return
	}
	r := p.Front()
	if r == nil {
		p.fail(errOutOfStep)
		return
	}
	p.heard = true
	if reply[0] == '-' && r.Session != nil && p.instead(r, reply) {
		return
	}
	session, part, seq, id := r.Session, r.Part, r.Seq, r.ID
	p.w.popped, p.popped = p.popped, 0
	p.pop()
	switch {
	case part != nil:
		part.Done(id, reply)
		p.w.act()
	case session != nil:
		session.Owner.(*client).reply(seq, reply)
	default:
		p.told(reply)
	}
}

// told handles the reply to a request of the pipe's own: to LEVEL, or to one whose reply does not
// matter.
func (p *pipe) told(reply []byte) {
	if later, ok := member.ParseWelcome(reply); ok && later {
		p.AnswersLater = true
	}
}

// pop removes the front request and wakes the sessions that waited for room.
func (p *pipe) pop() {
	p.Pop()
	p.hasRoom()
}

// hasRoom wakes the sessions that waited for room, if there is enough.
func (p *pipe) hasRoom() {
	if len(p.waiters) > 0 && p.HasRoom() {
		p.wakeWaiters()
	}
}

// pushed handles a push: the reply to a request that the node answers later, or what stands in its
// place.
func (p *pipe) pushed(push []byte) {
	if p.Lane.Kind == member.Listening {
		if !p.w.listening.heard(p.Node, push) {
			p.fail(errOutOfStep)
		}
		return
	}
	if p.Lane.Tracks {
		if g, ok := member.ParseGone(push); ok {
			if g.All {
				p.w.tracking.table.FlushCopies() // whoever follows prefixes is told over the pipe that listens
				p.w.tracking.table.Tell()
				return
			}
			p.w.gone(g)
			return
		}
	}
	token, reply, ok := member.ParsePush(push)
	if !ok {
		if p.popped, ok = member.ParsePopped(push); !ok {
			p.fail(errOutOfStep)
		}
		return
	}
	p.w.popped, p.popped = p.popped, 0
	what := member.Classify(reply)
	if what.Refused() {
		p.refused(p.w.order.RefusedLater(p.Pipe, token, refusalOf(what, reply), p.w.loop.Now()))
		return
	}
	ticket, size, large := member.ParseTicket(reply)
	if what == member.Later || what == member.LargeReply && !large {
		p.fail(errOutOfStep)
		return
	}
	r, ok := p.w.order.Completed(p.Pipe, token)
	if !ok {
		p.fail(errOutOfStep)
		return
	}
	p.hasRoom()
	switch {
	case large:
		p.beginFetch(r, ticket, size)
	case r.Part != nil:
		r.Part.Done(r.ID, reply)
	default:
		r.Session.Owner.(*client).reply(r.Seq, reply)
	}
	p.w.act()
}

func (p *pipe) wakeWaiters() {
	for i, s := range p.waiters {
		if s.waitsFor == p {
			s.waitsFor = nil
		}
		s.resume()
		p.waiters[i] = nil
	}
	p.waiters = p.waiters[:0]
}

// instead handles a refusal, a ticket or a token, which a node sends in place of a reply. It reports
// whether the reply was one of these; then the front request r has left the FIFO.
func (p *pipe) instead(r *order.Request, reply []byte) bool {
	switch what := member.Classify(reply); {
	case what.Refused():
		p.w.order.Refused(p.Pipe, refusalOf(what, reply), p.w.loop.Now())
		p.refused(true)
		return true
	case what == member.Later:
		token, ids, ok := member.ParseLater(reply)
		session := r.Session
		if !ok || !p.w.order.Later(p.Pipe, token, ids) {
			p.fail(errOutOfStep)
		} else if session.Waits() {
			session.Owner.(*client).blocked()
		}
		p.hasRoom()
		p.w.act()
		return true
	case what == member.LargeReply && p.Lane.Kind == member.Common:
		ticket, size, ok := member.ParseTicket(reply)
		if !ok {
			return false
		}
		asked := *r
		p.popped = 0 // what is long is not returned
		p.pop()
		p.beginFetch(asked, ticket, size)
		return true
	}
	return false
}

// refusalOf reads a refusal.
func refusalOf(what member.Instead, reply []byte) (why order.Refusal) {
	if why.Moved = what == member.Moved; why.Moved {
		why.Partition, why.Addr = member.ParseMoved(reply)
	} else {
		why.Epoch = member.WaitEpoch(reply)
	}
	return why
}

// refused does what follows when the node has refused a request. If inStep is false, the Machine
// knows no such request.
func (p *pipe) refused(inStep bool) {
	if !inStep {
		p.fail(errOutOfStep)
		return
	}
	p.hasRoom()
	p.w.act()
}

// OnClose is called by the loop once the socket is gone.
func (p *pipe) OnClose(c *netloop.Conn, err error) {
	if p.conn != c {
		return
	}
	if err == nil {
		err = errPipeClosed
	}
	p.fail(err)
}

// fail tells the Machine that the pipe's connection is lost, or unusable because of err.
func (p *pipe) fail(err error) {
	p.w.order.Lost(p.Pipe, err, p.w.loop.Now())
	p.w.act()
}

// close closes the connection of a pipe that the Machine has given up.
func (p *pipe) close(a *order.Action) {
	p.w.stats.PipesBroken++
	if a.Notable {
		p.w.warn(&p.w.warnings.broken, "node", p.Node.Member.ID, "addr", p.Node.Member.Addr,
			"kind", p.Lane.Kind.String(), "inflight", a.Inflight, "err", a.Err)
	}
	if c := p.conn; c != nil {
		p.conn = nil
		c.Close(a.Err)
	}
	p.scan.Reset()
	p.popped = 0
	p.wakeWaiters()
	if p.tells {
		p.tells = false
		p.w.forgetAll()
	}
	if p.Lane.Kind == member.Listening {
		p.w.listening.lookAtAll()
	}
}

// tell sends a request of the pipe's own and ignores the reply.
func (p *pipe) tell(raw []byte) {
	p.w.order.Tell(p.Pipe, raw)
	p.w.act()
}
