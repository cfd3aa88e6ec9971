package proxy

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// A node answers a command whose reply is large with a ticket, so that the reply holds up nobody's
// on the common pipe. When it is the session's turn, the reply is fetched piece by piece over a
// pipe of its own kind, no faster than the client takes it:
//
//	common pipe   <─ -DUNLINLARGE ticket size        the command is executed; what follows may be sent
//	fetch pipe    ─> FETCH ticket offset count       two pieces are asked for, or unsent, at a time
//	common pipe   ─> FETCH ticket 0 0                the node may forget the reply
//
// The parts of a command that was split are fetched in their turn as well, all of them at once, and
// gathered. What is gathered counts as the session's.

const (
	fetchPiece  = 128 << 10
	maxFetching = 2                     // pieces of one reply that are asked for or unsent
	fetchPause  = 10 * time.Millisecond // before a piece is asked for again
	keepPieces  = 16                    // free buffers that a worker keeps
)

// fetch is one large reply.
type fetch struct {
	s      *client
	seq    uint64
	part   order.Part // takes the whole reply as that of its part id; nil: it goes to the client
	id     int32
	whole  []byte // what was gathered for the part
	ticket uint64
	size   int
	from   *pipe  // the ticket ends with its connection
	opened uint64 // its attempt then

	asked, got int // bytes of the reply
	pieces     int // asked for or unsent
	retrying   bool
	since      time.Duration // when fetching first failed, 0 since it went on
	ended      bool
}

// fetch takes the ticket that is the reply to a request, which was popped.
func (p *pipe) fetch(r order.Request, ticket uint64, size int) {
	s := r.Session.Owner.(*client)
	f := &fetch{s: s, seq: r.Seq, part: r.Part, id: r.ID, ticket: ticket, size: size, from: p, opened: p.Attempt()}
	p.w.stats.LargeReplies++
	p.Node.Kept++
	if s.isClosed() {
		f.end()
		return
	}
	if whole, ok := r.Part.(*fan); ok && whole.parts == 1 {
		f.part = nil // one node has the whole command: there is nothing to merge
	}
	if f.part == nil && s.isMuted(r.Seq) {
		f.end()
		s.reply(r.Seq, nil)
		return
	}
	if t, ok := f.part.(*transaction); ok && !t.takes(r.ID, size) {
		f.end()
		t.Done(r.ID, errRepliesLarge)
		return
	}
	s.fetches = append(s.fetches, f)
	if f.part == nil {
		s.replied(f.seq)
	}
	s.replySize = max(s.replySize, min(size, fetchPiece))
	s.fetchNext()
	s.progress()
}

// fetchNext begins to fetch the reply whose turn it is, or its parts, if it is a large one.
func (s *client) fetchNext() {
	for _, f := range slices.Clone(s.fetches) { // to ask may end some
		if f.seq == s.head && f.asked == 0 {
			f.ask()
		}
	}
}

// ask has the node send what may be sent now.
func (f *fetch) ask() {
	w := f.from.w
	if f.part != nil && f.got == 0 && !f.ended && f.s.conn.Queued() > maxReplyBytes {
		f.later() // what is gathered is put into the output as a whole
		return
	}
	for !f.ended && !f.retrying && f.pieces < maxFetching && f.asked < f.size {
		if !f.valid() {
			f.fail()
			return
		}
		count := min(fetchPiece, f.size-f.asked)
		raw := member.AppendFetch(w.scratch[:0], member.Piece{Ticket: f.ticket, Offset: f.asked, Count: count})
		w.keepScratch(raw)
		p := f.from.Node.Pipe(order.Lane{Kind: member.Fetching, Version: resp.RESP2})
		if !w.order.Ask(p, order.Request{Session: &f.s.Session, Part: f, Seq: f.seq}, raw, w.loop.Now()) {
			w.act()
			f.retry()
			return
		}
		f.pieces++
		f.asked += count
		w.act()
	}
}

// valid reports whether the node still has the reply.
func (f *fetch) valid() bool { return f.from.Attempt() == f.opened && f.from.IsOpen() }

// retry asks again a little later.
func (f *fetch) retry() {
	w := f.from.w
	if f.since == 0 {
		f.since = w.loop.Now()
	}
	if w.loop.Now()-f.since > w.proxy.cfg.Hold {
		f.fail()
		return
	}
	f.later()
}

// later asks again after a while.
func (f *fetch) later() {
	if f.retrying {
		return
	}
	f.retrying = true
	f.from.w.loop.After(fetchPause, func() {
		f.retrying = false
		f.ask()
	})
}

// Undone is called for a piece that was asked for on a pipe that broke.
func (f *fetch) Undone() {
	if f.ended {
		return
	}
	f.pieces--
	f.asked = f.got // pieces come in order: the later ones are lost as well
	if !f.retrying {
		f.retry()
	}
}

// Done takes a piece.
func (f *fetch) Done(_ int32, reply []byte) {
	if f.ended {
		return
	}
	piece, ok := resp.DecodeBulk(reply)
	if !ok || len(piece) != min(fetchPiece, f.size-f.got) {
		f.fail()
		return
	}
	f.since = 0
	f.got += len(piece)
	if f.part != nil {
		f.gather(piece)
		return
	}
	f.pass(piece)
	if f.got < f.size {
		return
	}
	f.end()
	s := f.s
	s.head++
	s.conn.SetOut(s.appendReady(s.conn.Out()))
	s.fetchNext()
	s.progress()
}

// pass gives a piece to the client.
func (f *fetch) pass(piece []byte) {
	c := f.s.conn
	b := f.from.w.newPiece(f)
	f.s.pieces++
	f.s.chargeOther()
	b.bytes = append(b.bytes[:0], piece...)
	out := c.Out()
	c.SetOut(out)
	c.Insert(len(out), b.bytes, b)
}

// gather keeps a piece for the part that the reply belongs to.
func (f *fetch) gather(piece []byte) {
	f.pieces--
	if f.whole == nil {
		if !f.s.gather(f.size) {
			return // no memory for it: the session is closed
		}
		f.whole = make([]byte, 0, f.size)
	}
	f.whole = append(f.whole, piece...)
	if f.got < f.size {
		f.ask()
		return
	}
	f.finish(f.whole)
}

// finish gives the part its reply.
func (f *fetch) finish(reply []byte) {
	f.end()
	f.part.Done(f.id, reply)
}

// fail ends a reply that cannot be had: with an error if the client has nothing of it yet.
func (f *fetch) fail() {
	f.end()
	if !f.s.isClosed() {
		f.from.w.stats.LostReplies++
	}
	switch {
	case f.part != nil:
		f.finish(errLost)
	case f.got == 0:
		f.s.reply(f.seq, errLost)
	default:
		f.s.conn.Close(errCutOff)
	}
}

// end has the node forget the reply.
func (f *fetch) end() {
	if f.ended {
		return
	}
	f.ended = true
	f.from.Node.Kept--
	f.s.fetches = slices.DeleteFunc(f.s.fetches, func(other *fetch) bool { return other == f })
	if f.whole != nil {
		f.s.gather(-f.size)
	}
	if f.valid() {
		f.from.tell(member.AppendFetch(nil, member.Piece{Ticket: f.ticket}))
	}
}

// piece is a part of a large reply in the output of a client.
type piece struct {
	f     *fetch
	bytes []byte
}

// Release is called when the piece is sent, or never will be.
func (b *piece) Release() {
	f, w := b.f, b.f.from.w
	b.f = nil
	if len(w.pieces) < keepPieces {
		w.pieces = append(w.pieces, b)
	}
	f.s.pieces--
	f.s.chargeOther()
	f.pieces--
	f.ask()
}

func (w *worker) newPiece(f *fetch) *piece {
	n := len(w.pieces)
	if n == 0 {
		return &piece{f, make([]byte, 0, fetchPiece)}
	}
	b := w.pieces[n-1]
	w.pieces = w.pieces[:n-1]
	b.f = f
	return b
}

// gather notes that parts of replies take n bytes more. False: there is no memory for them, and the
// session is closed.
func (s *client) gather(n int) bool {
	s.gathered += n
	return s.chargeOther()
}

// chargeOther counts what the session has beside its connection's buffers. False: there is no
// memory for it, and the session is closed.
func (s *client) chargeOther() bool {
	return s.conn.SetOther(cap(s.early) + s.gathered + s.pieces*fetchPiece + s.state.QueuedBytes())
}
