package proxy

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// A node answers a command that has a large reply with a ticket, so that no other reply waits
// behind it on the common pipe. When the session's turn comes, the proxy fetches the reply in
// pieces over a fetch pipe, no faster than the client reads it:
//
//	common pipe   <─ -DUNLINLARGE ticket size        the command is executed; later commands may be sent
//	fetch pipe    ─> FETCH ticket offset count       at most two pieces are requested or unsent at a time
//	common pipe   ─> FETCH ticket 0 0                the node may forget the reply
//
// The large parts of a split command are fetched in the command's turn too, all at once, and
// gathered in memory, which is charged to the session.

const (
	fetchPiece  = 128 << 10
	maxFetching = 2                     // pieces of one reply that are requested or unsent
	fetchPause  = 10 * time.Millisecond // before a piece is requested again
	keepPieces  = 16                    // free buffers that a worker keeps
)

// fetch is one large reply that the node keeps until the proxy has read it.
type fetch struct {
	s      *client
	seq    uint64
	part   order.Part // receives the whole reply, as that of request id; nil: the client receives it
	id     int32
	whole  []byte // the bytes gathered for part so far
	ticket uint64
	size   int
	from   *pipe  // issued the ticket, which ends with that connection
	opened uint64 // from.Attempt() when the ticket came

	asked, got int // bytes of the reply requested, and received
	pieces     int // requested or unsent
	retrying   bool
	since      time.Duration // when fetching began to fail; 0 while it succeeds
	ended      bool
}

// beginFetch notes the ticket that answers a request. The request has been popped already.
func (p *pipe) beginFetch(r order.Request, ticket uint64, size int) {
	s := r.Session.Owner.(*client)
	f := &fetch{s: s, seq: r.Seq, part: r.Part, id: r.ID, ticket: ticket, size: size, from: p, opened: p.Attempt()}
	p.w.stats.LargeReplies++
	p.Node.Kept++
	if s.isClosed() {
		if s.blocking && s.waits == r.Seq && pops(s.state.LastCmd) {
			p.w.stats.ReturnsLost++
		}
		f.end()
		return
	}
	s.unblocked(r.Seq, nil)
	if s.selecting && r.Part == nil && s.selection.seq == r.Seq {
		s.selected(true)
	}
	if whole, ok := r.Part.(*fan); ok && whole.isWhole() {
		f.part = nil
	}
	if s.isMuted(r.Seq) {
		switch part := f.part.(type) {
		case nil:
			f.end()
			s.reply(r.Seq, nil)
			return
		case *fan:
			if part.of == nil {
				f.end()
				part.drop()
				return
			}
		}
	}
	if t, ok := f.part.(*transaction); ok && !t.fits(r.ID, size) {
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

// fetchNext begins to fetch the reply whose turn has come, or its parts, if it is large.
func (s *client) fetchNext() {
	for _, f := range slices.Clone(s.fetches) { // ask may end some of them
		if f.seq == s.head && f.asked == 0 {
			f.ask()
		}
	}
}

// ask requests as many pieces as may be in flight now.
func (f *fetch) ask() {
	w := f.from.w
	if f.part != nil && f.got == 0 && !f.ended && f.s.conn.Queued() > maxReplyBytes {
		f.later() // a gathered reply enters the output as a whole
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

// valid reports whether the node still has the reply: it drops it with the connection.
func (f *fetch) valid() bool { return f.from.Attempt() == f.opened && f.from.IsOpen() }

// retry asks again after fetchPause. Once fetching has failed for Config.Patience, it gives up.
func (f *fetch) retry() {
	w := f.from.w
	if f.since == 0 {
		f.since = w.loop.Now()
	}
	if w.loop.Now()-f.since > w.proxy.cfg.Patience {
		f.fail()
		return
	}
	f.later()
}

// later asks again after fetchPause.
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

// Undone notes that the fetch pipe broke before a requested piece came.
func (f *fetch) Undone() {
	if f.ended {
		return
	}
	f.pieces--
	f.asked = f.got // pieces come in order, so all later ones are lost too
	if !f.retrying {
		f.retry()
	}
}

// Done receives a piece.
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
	f.s.passed()
}

// pass appends a copy of a piece to the client's output, as an insert.
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

// gather appends a piece to the reply of a part, and delivers the reply when it is whole.
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

// finish delivers the whole reply to the part.
func (f *fetch) finish(reply []byte) {
	f.end()
	f.part.Done(f.id, reply)
}

// fail gives up a reply that is lost. The client receives an error, or loses its connection if it
// already has the beginning of the reply.
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

// end tells the node to drop the reply, and stops fetching it.
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

// piece is a buffer of at most fetchPiece bytes of a large reply in the output of a client.
type piece struct {
	f     *fetch
	bytes []byte
}

// Release is called once the piece has been sent or dropped. It requests the next one.
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

// gather charges n more bytes of gathered replies to the session; n may be negative. It reports
// false if there is no memory for them: then the session is closed.
func (s *client) gather(n int) bool {
	s.gathered += n
	return s.chargeOther()
}

// chargeOther charges the memory that the session uses beside its connection's buffers. It reports
// false if there is not enough memory: then the session is closed.
func (s *client) chargeOther() bool { return s.conn.SetOther(s.otherBytes()) }

func (s *client) otherBytes() int {
	n := cap(s.early) + s.gathered + s.kept + s.pieces*fetchPiece + s.state.OwnBytes() + s.parsing
	if s.topics != nil {
		n += s.topics.Bytes()
	}
	if s.tracker != nil {
		n += s.tracker.charged
	}
	return n
}
