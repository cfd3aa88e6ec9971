package order

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A node answers a request that takes long by a token, and completes it by a push (see
// internal/member). In between the request is deferred: it has left the pipe's FIFO, so that the
// replies behind it are paired with the requests behind it, and everything else takes it for
// outstanding. Its bytes stay, because it may come back refused or its pipe may break:
//
//	pipe   D G H    D: token 7    FIFO G H, deferred D    G: reply, H: reply, 7: D's reply
//
// A deferred read has its moment already: the node reads from what the key held then. A deferred
// write has not, nor has a request with keys in several partitions. Its node refuses all later
// requests of the pipe for these partitions until it is complete, and the Machine sends none
// meanwhile. So it is overtaken by nothing, also when its completion is a refusal and a RETRY is on
// its way to the node:
//
//	wrong  D RETRY D2            D is refused in the end, RETRY makes the node forget that, D2 is not
//	right  D RETRY ... D' D2     D2 is parked until D is complete
//
// A RETRY for other partitions does not wait for deferred requests: the node goes on refusing what
// would overtake them.

// deferred is a request that its node completes later.
type deferred struct {
	parked
	token  uint64
	writes bool               // or has keys in several partitions
	places *ring.PartitionSet // these partitions; nil: any

	canceled bool // the node was told that nobody waits for it any more
	charged  bool // a blocking command whose bytes are charged to its session
}

// deferrals are the deferred requests of a pipe.
type deferrals struct {
	list   []deferred // by token
	newest uint64     // token
	bytes  int        // of the requests that were copied
	writes int        // how many of list have writes set
	waits  waitList   // blocking commands
}

// Later is the event that the node will complete the front request of a pipe by a push with the
// token. It takes the request off the FIFO. ids, which are read during the call, are those that a blocking
// command means from now on (member.Settle). If ok is false, the node is out of step and nothing has happened.
func (m *Machine) Later(p *Pipe, token uint64, ids []byte) (ok bool) {
	r, l := p.Front(), &p.later
	if r == nil || r.Session == nil || token <= l.newest {
		return false
	}
	raw := r.bare(p.buf[p.acked-p.base:r.end-p.base], p.body == nil)
	args := words(raw)
	if isBlocking(args) && p.body == nil {
		d := &deferred{parked: parked{Request: *r, raw: bytes.Clone(raw)}, token: token}
		if len(ids) > 0 && !r.asks && !m.broken.forgetsIDs() {
			if d.raw, ok = settle(args, ids); !ok {
				return false
			}
		}
		l.newest = token
		p.drop(r)
		m.await(p, d, ids)
		return true
	}
	if len(l.list) >= member.MaxLater || len(ids) > 0 {
		return false
	}
	body := p.takeBody()
	if body == nil {
		raw = bytes.Clone(raw)
		l.bytes += len(raw)
	}
	d := deferred{parked: parked{Request: *r, raw: raw, body: body}, token: token}
	d.writes = !r.Keyless && !onlyReads(args) && !isGathered(command.Row(args))
	if part, ok := r.Part.(Scattered); ok {
		d.writes = true
		if partitions := part.Partitions(raw, aheadBytes); partitions != nil {
			d.places = new(ring.PartitionSet)
			for _, partition := range partitions {
				d.places.Add(partition)
			}
		}
	}
	p.drop(r)
	p.settle()
	l.newest = token
	l.list = append(l.list, d)
	if d.writes {
		l.writes++
	}
	if m.broken.uncountsDeferred() && !d.asks {
		d.Session.remote--
	}
	return true
}

// take removes the request with the token.
func (l *deferrals) take(token uint64) (d deferred, ok bool) {
	if d, ok := l.takeWait(token); ok {
		return d, true
	}
	byToken := func(d deferred, token uint64) int { return cmp.Compare(d.token, token) }
	i, ok := slices.BinarySearchFunc(l.list, token, byToken)
	if !ok {
		return d, false
	}
	d = l.list[i]
	l.list = slices.Delete(l.list, i, i+1)
	if d.body == nil {
		l.bytes -= len(d.raw)
	}
	if d.writes {
		l.writes--
	}
	return d, true
}

// Completed is the event that the reply to the deferred request with the token has come. It returns
// the request and frees its bytes. If ok is false, there is no such request: the node is out of step.
func (m *Machine) Completed(p *Pipe, token uint64) (r Request, ok bool) {
	d, ok := p.later.take(token)
	if !ok {
		return r, false
	}
	p.settle()
	release(d.body)
	if !d.asks && !m.broken.uncountsDeferred() {
		d.Session.remote--
	}
	if d.writes {
		// The refusals since the last RETRY were because of this write. Otherwise each of the long writes
		// that a client pipelines would wait for the longest pause.
		p.latch.rounds = 0
	}
	m.passOn(&d)
	return d.Request, true
}

// RefusedLater is the event that the node has not executed the deferred request with the token after
// all. It is Refused for that request. If ok is false, the node is out of step.
func (m *Machine) RefusedLater(p *Pipe, token uint64, why Refusal, now time.Duration) (ok bool) {
	d, ok := p.later.take(token)
	if !ok {
		return false
	}
	p.settle()
	if m.broken.uncountsDeferred() && !d.asks {
		d.Session.remote++
	}
	m.refused(p, &d.Request, d.raw, d.body, why, now)
	m.passOn(&d)
	return true
}

// passOn has the requests that waited for a deferred write tried again soon.
func (m *Machine) passOn(d *deferred) {
	if d.writes && len(m.parking) > 0 {
		m.retrySoon()
	}
}

// returnDeferred decides about the deferred requests of a pipe that broke. since is when its node
// could last be reached.
func (m *Machine) returnDeferred(p *Pipe, list []deferred, since, now time.Duration) {
	if m.broken.forgetsDeferred() {
		return
	}
	for i := range list {
		d := &list[i]
		if d.since == 0 {
			d.since = since
		}
		if m.broken.uncountsDeferred() && !d.asks {
			d.Session.remote++
		}
		m.returned(&d.Request, d.raw, d.body, p, true, now)
	}
}

// overtakesDeferred reports whether a request, whose bytes are raw, must wait for a deferred write.
func (m *Machine) overtakesDeferred(p *Pipe, r *Request, raw []byte) bool {
	if p.later.writes == 0 || r.Keyless || m.broken.overtakesDeferred() {
		return false
	}
	part, ok := r.Part.(Scattered)
	if !ok {
		return p.later.writesTo(r.Partition)
	}
	partitions := part.Partitions(raw, aheadBytes)
	return partitions == nil || slices.ContainsFunc(partitions, p.later.writesTo)
}

// writesTo reports whether a deferred write may concern the partition.
func (l *deferrals) writesTo(partition uint16) bool {
	return slices.ContainsFunc(l.list, func(d deferred) bool {
		switch _, scattered := d.Part.(Scattered); {
		case !d.writes || d.asks:
			return false
		case scattered:
			return d.places == nil || d.places.Has(partition)
		}
		return d.Partition == partition
	})
}

// promptRequest is up to how many bytes a request is short.
const promptRequest = 64 << 10

// offer tells the node of an open pipe that this proxy understands what is answered later, if the
// pipe was opened when the cluster's level did not allow that yet.
func (m *Machine) offer(p *Pipe) {
	if p.state != open || p.AnswersLater || m.table == nil || m.table.Level < ring.OfferLevel {
		return
	}
	if raw := member.AppendLevel(nil); !p.offered && !p.full(len(raw)) {
		p.offered = true
		m.Tell(p, raw)
	}
}

// cancel tells the node of a pipe which deferred requests nobody waits for any more, because their
// clients have gone: the node ends the work for them soon. Their completions come all the same.
func (m *Machine) cancel(p *Pipe) {
	if len(p.later.list) == 0 || p.state != open || m.table.Level < ring.OfferLevel {
		return
	}
	for i := range p.later.list {
		d := &p.later.list[i]
		if !d.canceled && d.Session.closed && p.body == nil {
			d.canceled = true
			m.Tell(p, member.AppendCancel(nil, d.token))
		}
	}
}

// CancelDeferred tells the nodes at once that nobody waits for the deferred requests of a session that is closed.
// Those that its nodes defer after this are canceled at the next tick.
func (m *Machine) CancelDeferred(s *Session) {
	if s.remote == 0 {
		return
	}
	for _, n := range m.list {
		m.cancel(n.Pipe(s.lane))
	}
}

// prompt reports whether the front request of a pipe gets an answer at once, if its node lives:
// because the node answers later what takes long. Long requests it executes at once, and nodes of a
// lower level transactions.
func (m *Machine) prompt(p *Pipe) bool {
	r := p.Front()
	if r == nil || !p.AnswersLater || p.body != nil || r.end-p.acked > promptRequest {
		return false
	}
	if r.Session == nil {
		return true // PING, RETRY, or the end of a ticket
	}
	args := words(r.bare(p.buf[p.acked-p.base:r.end-p.base], p.body == nil))
	if len(args) == 0 {
		return false
	}
	cmd := command.Row(args)
	switch {
	case cmd == nil:
		return false
	case cmd.ID == command.DunlinExec, cmd.ID == command.DunlinWatch:
		return m.table.Level >= ring.OfferLevel
	}
	return cmd.Flags&command.Heavy != 0 || cmd.ID == command.DunlinEach || cmd.ID == command.DunlinFetch ||
		cmd.ID == command.DunlinListen
}

// probe asks a node something that it answers at once, when it has been silent for half of what is
// too long and nothing but deferred requests is outstanding. So a dead node's are given up as soon
// as others.
func (m *Machine) probe(p *Pipe) {
	if p.silent == (m.silentTicks+1)/2 {
		p.probed = true
		m.Tell(p, resp.AppendRequest(nil, []byte("PING")))
	}
}
