package proxy

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	retryFirst = time.Millisecond // a partition changes hands within a few
	retryEvery = 10 * time.Millisecond
	maxHops    = 4 // -MOVED replies that a command follows before it waits a little
)

// held is a request that came back undone, or that no open pipe could take.
type held struct {
	request
	raw  []byte          // its bytes, owned
	body *netloop.Buffer // not nil: has the memory of raw
}

// broken decides about a request whose pipe broke. What may have been executed and must not be executed twice fails.
// raw is valid during the call; a body is no longer the caller's.
func (w *worker) broken(r request, raw []byte, body *netloop.Buffer, begun bool) {
	if begun && !w.repeatable(raw) {
		body.Release()
		w.lose(r)
		return
	}
	r.begun = r.begun || begun
	w.undone(r, raw, body)
}

// undone holds a request to be sent again, to whoever owns its partition then. See hold about raw and body.
func (w *worker) undone(r request, raw []byte, body *netloop.Buffer) {
	if c, ok := r.part.(interface{ undone() }); ok {
		c.undone()
		return
	}
	r.client.hold(r, raw, body)
	r.client.drain = true
}

// lose answers a request that a node may have executed, and that is not sent again. Nobody misses the reply to a client
// that is gone.
func (w *worker) lose(r request) {
	if !r.client.closed {
		w.stats.LostReplies++
	}
	w.fail(r, errUnknown)
}

// fail answers a request with an error.
func (w *worker) fail(r request, reply []byte) {
	if r.part != nil {
		r.part.partDone(r.id, reply)
		return
	}
	r.client.deliver(r.seq, reply)
}

// repeatable reports whether a request may be executed twice. It is parsed again, since that is rare and remembering it
// would cost every command.
func (w *worker) repeatable(raw []byte) bool {
	var p resp.Parser
	if p.Parse(raw) != resp.Done || len(p.Args()) == 0 {
		return false
	}
	cmd := command.Row(p.Args())
	if cmd != nil && cmd.Flags&command.Internal != 0 {
		return cmd.ID != command.DunlinExec
	}
	return cmd != nil && cmd.IdempotentCall(p.Args())
}

// hold keeps a request until it can be sent again. The session sends nothing new meanwhile. raw is copied, unless
// there is a body, which is the session's from now on.
func (s *client) hold(r request, raw []byte, body *netloop.Buffer) {
	if s.closed {
		body.Release()
		return
	}
	if body == nil {
		raw = bytes.Clone(raw)
	}
	s.w.stats.Held++
	if r.since == 0 {
		r.since = s.w.loop.Now()
	}
	s.w.list(s)
	s.held = append(s.held, held{r, raw, body})
	s.w.armRetry()
}

// retry sends what the session holds again, in the order of its commands, once nothing of it is on its way any more.
func (s *client) retry(now time.Duration) {
	s.giveUp(now)
	if s.closed || s.remote > len(s.held) {
		return
	}
	slices.SortFunc(s.held, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.id, b.id))
	})
	sent := 0
	for sent < len(s.held) && s.resend(&s.held[sent]) {
		sent++
	}
	s.held = slices.Delete(s.held, 0, sent)
	if sent > 0 {
		s.progress()
	}
}

// giveUp answers what was held for too long.
func (s *client) giveUp(now time.Duration) {
	limit := s.w.proxy.cfg.Hold
	expired := func(h held) bool { return now-h.since > limit }
	if !slices.ContainsFunc(s.held, expired) {
		return
	}
	var gone []held
	s.held = slices.DeleteFunc(s.held, func(h held) bool {
		if expired(h) {
			gone = append(gone, h)
			return true
		}
		return false
	})
	for _, h := range gone {
		h.body.Release()
		if h.begun {
			s.w.lose(h.request)
			continue
		}
		s.w.stats.HeldTooLong++
		s.w.fail(h.request, errHeldLong)
	}
}

// resend reports whether a held request was sent.
func (s *client) resend(h *held) bool {
	if f, ok := h.part.(*fan); ok {
		return f.resend(h)
	}
	p := s.ready(s.w.owner[h.partition], len(h.raw))
	if p == nil {
		return false
	}
	p.send(h.request, h.raw, h.body)
	return true
}

// ready is the open pipe to a peer that takes a request sent again, or nil.
func (s *client) ready(owner *peer, size int) *pipe {
	if owner == nil {
		return nil
	}
	p := owner.pipe(s.lane)
	if p.state != pipeOpen {
		p.open()
		return nil
	}
	if p.full(size) || !p.unlatch() || p.full(size) { // unlatch may have sent something
		return nil
	}
	return p
}

// list notes that a session holds requests.
func (w *worker) list(s *client) {
	if !s.listed {
		s.listed = true
		w.holding = append(w.holding, s)
	}
}

// armRetry makes the held requests be tried again a little later, and then less and less often.
func (w *worker) armRetry() {
	if w.retryTimer != nil {
		return
	}
	w.retryTimer = w.loop.After(w.retryPause, func() {
		w.retryTimer = nil
		w.retryPause = min(2*w.retryPause, retryEvery)
		w.retryHeld()
	})
}

// retrySoon makes pauses begin small again.
func (w *worker) retrySoon() {
	w.retryPause = retryFirst
	if w.retryTimer != nil {
		w.retryTimer.Stop()
		w.retryTimer = nil
		w.armRetry()
	}
}

// retryHeld tries everything that is held: after a while, when a pipe has opened and when a table has come.
func (w *worker) retryHeld() {
	now := w.loop.Now()
	holding := w.holding
	w.holding = nil
	for _, s := range holding {
		s.listed = false
		s.retry(now)
		if len(s.held) > 0 {
			w.list(s)
		}
	}
	if len(w.holding) > 0 {
		w.armRetry()
	} else {
		w.retryPause = retryFirst
	}
}

// follow routes a partition to the node that a -MOVED reply names, until the next table. Every session does so from now on:
// if one command of a session went by the reply and another by the table, they could change places. Two nodes that do not
// obey the same table yet may point to each other: after maxHops the command waits a little and begins at the table again.
func (w *worker) follow(r *request, reply []byte) {
	partition, addr := member.ParseMoved(reply)
	to := w.byAddr[addr]
	if to == nil || to.gone {
		return // the next table will tell
	}
	if r.hops >= maxHops {
		r.hops = 0
		w.routeByTable(partition)
		return
	}
	r.hops++
	w.redirected = append(w.redirected, r.client)
	w.reroute(partition, to)
}

// routeByTable undoes what a -MOVED reply told about a partition.
func (w *worker) routeByTable(partition uint16) {
	w.reroute(partition, w.peers[w.table.OwnerOf(partition).Name()])
}

// reroute gives a partition to another owner.
func (w *worker) reroute(partition uint16, to *peer) {
	was := w.owner[partition]
	if was == to || to == nil {
		return
	}
	if was != nil {
		was.owned.Remove(partition)
	}
	to.owned.Add(partition)
	w.owner[partition] = to
	w.route++
}

// retryRedirected sends what was redirected in this iteration.
func (w *worker) retryRedirected() {
	now := w.loop.Now()
	for i, s := range w.redirected {
		s.retry(now)
		w.redirected[i] = nil
	}
	w.redirected = w.redirected[:0]
}
